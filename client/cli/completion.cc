#include "client/cli/completion.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "client/cli/command.h"
#include "client/cli/command_tree.h"

namespace rowhouse::cli {
namespace {

// Flags that take a value with `=`, which is to be typed on.
std::string Words(const CLI::App& command) {
  std::vector<std::string> words;
  for (const FlagName& flag : FlagsOf(command)) {
    words.push_back(flag.name + (flag.takes_value ? "=" : ""));
  }
  return absl::StrJoin(words, " ");
}

}  // namespace

std::string Quoted(const std::string& text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", ""}, {"\n", " "}}),
                      "'");
}

std::string BashCompletion(const CLI::App& app) {
  std::string cases;
  for (const CLI::App* command : AllCommands(app)) {
    const std::string path = PathOf(*command);
    absl::StrAppend(&cases, "        '", path, "') ");
    if (IsGroup(*command)) {
      absl::StrAppend(&cases, "group='", path, " ' command= commands='",
                      absl::StrJoin(CommandsOf(*command), " "), "' ;;\n");
      continue;
    }
    const NameArguments names = NameArgumentsOf(*command);
    absl::StrAppend(&cases, "words='", Words(*command), "'");
    if (names.count > 0) {
      absl::StrAppend(&cases, " names='", names.source,
                      "' places=", names.count);
    }
    cases += " ;;\n";
  }
  // Of the line, and not of COMP_WORDS: that is cut at each `=` and `:` too.
  return absl::StrReplaceAll(
      R"(# bash completion of NAME: source <(NAME completion bash)
_NAME() {
  local commands='COMMANDS' common='COMMON'
  local line=${COMP_LINE:0:COMP_POINT} current= group= command= words= names=
  local flag= word
  local -a typed reach=()
  local -i given=0 places=0
  read -ra typed <<< "$line"
  if [[ $line != *[[:space:]] ]]; then
    current=${typed[${#typed[@]}-1]}
    typed=("${typed[@]:0:${#typed[@]}-1}")
  fi
  for word in "${typed[@]:1}"; do
    if [[ -n $flag ]]; then
      case $flag in
        --servers | --cluster-id | --tls-*) reach+=("$flag" "$word") ;;
      esac
      flag=
    elif [[ $word == -* ]]; then
      [[ " $words $common " == *" $word= "* ]] && flag=$word
      case $word in
        --servers=* | --cluster-id=* | --tls | --tls-*=*) reach+=("$word") ;;
        --inspect) given=9 ;;
      esac
    elif [[ -n $command ]]; then
      given+=1
    elif [[ " $commands " == *" $word "* ]]; then
      command=$group$word
      case $command in
CASES      esac
    fi
  done
  if [[ -n $flag || $current == --*=* ]]; then
    return
  elif [[ -z $command ]]; then
    words=$commands
  elif [[ $current != -* ]]; then
    words= common=
    if [[ $command == completion ]]; then
      words='bash zsh fish'
    elif (( given < places )); then
      words=$("${typed[0]}" $names --names --timeout=1 "${reach[@]}" 2> /dev/null)
    fi
  fi
  COMPREPLY=($(compgen -W "$words $common" -- "$current"))
  [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace
  return 0
}
complete -o default -F _NAME NAME
)",
      {{"NAME", app.get_name()},
       {"COMMANDS", absl::StrJoin(CommandsOf(app), " ")},
       {"COMMON", Words(app)},
       {"CASES", cases}});
}

}  // namespace rowhouse::cli
