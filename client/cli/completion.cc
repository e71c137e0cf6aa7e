#include "client/cli/completion.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace rowhouse::cli {
namespace {

std::vector<const CLI::App*> Subcommands(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

// Flags that take a value with `=`, which is to be typed on.
std::string Words(const CLI::App& command) {
  std::vector<std::string> words;
  for (const FlagName& flag : FlagsOf(command)) {
    words.push_back(flag.name + (flag.takes_value ? "=" : ""));
  }
  return absl::StrJoin(words, " ");
}

// Whether its first argument is a table that may be there.
bool TakesTable(const CLI::App& command) {
  if (command.get_name() == "create") return false;
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_positional() && option->check_name("table")) return true;
  }
  return false;
}

std::string TableCommands(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : Subcommands(app)) {
    if (TakesTable(*command)) names.push_back(command->get_name());
  }
  return absl::StrJoin(names, " ");
}

// Of all commands.
std::string ValueFlags(const CLI::App& app) {
  std::vector<std::string> names;
  const auto add = [&](const CLI::App& command) {
    for (const FlagName& flag : FlagsOf(command)) {
      if (flag.takes_value) names.push_back(flag.name);
    }
  };
  add(app);
  for (const CLI::App* command : Subcommands(app)) add(*command);
  return absl::StrJoin(names, " ");
}

// Text between single quotes, for all three shells.
std::string Quoted(const std::string& text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", ""}, {"\n", " "}}),
                      "'");
}

}  // namespace

std::vector<FlagName> FlagsOf(const CLI::App& command) {
  std::vector<FlagName> flags;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      flags.push_back({"--" + name, option->get_description(),
                       option->get_items_expected_max() > 0});
    }
  }
  return flags;
}

std::vector<std::string> CommandsOf(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : Subcommands(app)) {
    names.push_back(command->get_name());
  }
  return names;
}

std::string BashCompletion(const CLI::App& app) {
  std::string cases;
  for (const CLI::App* command : Subcommands(app)) {
    absl::StrAppend(&cases, "        ", command->get_name(), ") words='",
                    Words(*command), "' ;;\n");
  }
  // Of the line, and not of COMP_WORDS: that is cut at each `=` and `:` too.
  return absl::StrReplaceAll(
      R"(# bash completion of NAME: source <(NAME completion bash)
_NAME() {
  local commands='COMMANDS' common='COMMON'
  local line=${COMP_LINE:0:COMP_POINT} current= command= words= flag= word
  local -a typed reach=()
  local -i given=0
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
        --inspect) given=1 ;;
      esac
    elif [[ -n $command ]]; then
      given+=1
    elif [[ " $commands " == *" $word "* ]]; then
      command=$word
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
    elif [[ $given == 0 && ' TABLED ' == *" $command "* ]]; then
      words=$("${typed[0]}" list --names --timeout=1 "${reach[@]}" 2> /dev/null)
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
       {"TABLED", TableCommands(app)},
       {"CASES", cases}});
}

std::string ZshCompletion(const CLI::App& app) {
  const auto flags_of = [](const CLI::App& command, const std::string& indent) {
    std::string out;
    for (const FlagName& flag : FlagsOf(command)) {
      absl::StrAppend(
          &out, indent,
          Quoted(absl::StrCat(
              flag.name, flag.takes_value ? "=" : "", "[",
              absl::StrReplaceAll(flag.description, {{"[", ""}, {"]", ""}}),
              "]", flag.takes_value ? ":value:_files" : "")),
          "\n");
    }
    return out;
  };
  std::string commands;
  std::string cases;
  for (const CLI::App* command : Subcommands(app)) {
    const std::string& name = command->get_name();
    absl::StrAppend(
        &commands, "    ",
        Quoted(absl::StrCat(
            name, ":",
            absl::StrReplaceAll(command->get_description(), {{":", ","}}))),
        "\n");
    absl::StrAppend(&cases, "    ", name, ")\n      flags=(\n",
                    flags_of(*command, "        "), "      )\n");
    if (TakesTable(*command)) {
      absl::StrAppend(&cases, "      first=('1:table:_", app.get_name(),
                      "_tables')\n");
    }
    if (name == "completion") {
      cases += "      first=('1:shell:(bash zsh fish)')\n";
    }
    cases += "      ;;\n";
  }
  return absl::StrReplaceAll(
      R"zsh(#compdef NAME
_NAME_tables() {
  local -a typed=(${(Q)${(z)LBUFFER}}) reach tables
  local -i i
  for (( i = 1; i <= $#typed; ++i )); do
    case $typed[i] in
      --inspect) _files; return ;;
      --servers=* | --cluster-id=* | --tls | --tls-*=*) reach+=($typed[i]) ;;
      --servers | --cluster-id | --tls-*) reach+=($typed[i,i+1]) ;;
    esac
  done
  tables=(${(f)"$(NAME list --names --timeout=1 $reach 2> /dev/null)"})
  compadd -a tables
}
_NAME() {
  local context state line
  local -A opt_args
  local -a flags first
  local -a commands=(
COMMANDS  )
  local -a common=(
COMMON  )
  _arguments -C $common '1:command:->command' '*::argument:->argument' && return
  if [[ $state == command ]]; then
    _describe command commands
    return
  fi
  case $words[1] in
CASES  esac
  _arguments $flags $common $first '*:file:_files'
}
compdef _NAME NAME
)zsh",
      {{"NAME", app.get_name()},
       {"COMMANDS", commands},
       {"COMMON", flags_of(app, "    ")},
       {"CASES", cases}});
}

std::string FishCompletion(const CLI::App& app) {
  const std::string lead = absl::StrCat("complete -c ", app.get_name());
  const auto add = [&](const CLI::App& command, const std::string& condition,
                       std::string& out) {
    for (const FlagName& flag : FlagsOf(command)) {
      absl::StrAppend(&out, lead, condition, " -l ", flag.name.substr(2),
                      flag.takes_value ? " -r" : "", " -d ",
                      Quoted(flag.description), "\n");
    }
  };
  std::string out = absl::StrReplaceAll(
      R"(function __NAME_wants_table
  set -l typed (commandline -opc)
  contains -- --inspect $typed; and return 1
  set -l command
  set -l before
  for word in $typed[2..-1]
    if contains -- "$before" VALUED
      set before
      continue
    end
    set before $word
    if contains -- $word TABLED
      set command $word
    else if test -n "$command"; and not string match -q -- '-*' $word
      return 1
    end
  end
  test -n "$command"
end
function __NAME_tables
  set -l typed (commandline -opc)
  set -l reach
  for i in (seq (count $typed))
    switch $typed[$i]
      case '--servers=*' '--cluster-id=*' --tls '--tls-*=*'
        set -a reach $typed[$i]
      case --servers --cluster-id '--tls-*'
        set -a reach $typed[$i] $typed[(math $i + 1)]
    end
  end
  command $typed[1] list --names --timeout=1 $reach 2> /dev/null
end
)",
      {{"NAME", app.get_name()},
       {"TABLED", TableCommands(app)},
       {"VALUED", ValueFlags(app)}});
  for (const CLI::App* command : Subcommands(app)) {
    const std::string& name = command->get_name();
    absl::StrAppend(&out, lead, " -f -n __fish_use_subcommand -a ", name,
                    " -d ", Quoted(command->get_description()), "\n");
    add(*command, absl::StrCat(" -n '__fish_seen_subcommand_from ", name, "'"),
        out);
  }
  absl::StrAppend(&out, lead, " -f -n __", app.get_name(),
                  "_wants_table -a '(__", app.get_name(), "_tables)'\n", lead,
                  " -f -n '__fish_seen_subcommand_from completion' -a 'bash "
                  "zsh fish'\n");
  add(app, "", out);
  return out;
}

}  // namespace rowhouse::cli
