#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "client/cli/command.h"
#include "client/cli/command_tree.h"
#include "client/cli/completion.h"

namespace rowhouse::cli {
namespace {

// The flags of a command, a line each.
std::string ZshFlags(const CLI::App& command, const std::string& indent) {
  std::string out;
  for (const FlagName& flag : FlagsOf(command)) {
    absl::StrAppend(
        &out, indent,
        Quoted(absl::StrCat(
            flag.name, flag.takes_value ? "=" : "", "[",
            absl::StrReplaceAll(flag.description, {{"[", ""}, {"]", ""}}), "]",
            flag.takes_value ? ":value:_files" : "")),
        "\n");
  }
  return out;
}

// `_rowhouse`, `_rowhouse_checkpoint`.
std::string ZshName(const CLI::App& app, const CLI::App& group) {
  const std::string path = PathOf(group);
  return absl::StrCat("_", app.get_name(), path.empty() ? "" : "_",
                      absl::StrReplaceAll(path, {{" ", "_"}}));
}

// What completes a group's commands, or all those of `app`.
std::string ZshFunction(const CLI::App& app, const CLI::App& group) {
  std::string commands;
  std::string cases;
  for (const CLI::App* command : Subcommands(group)) {
    const std::string& name = command->get_name();
    absl::StrAppend(
        &commands, "    ",
        Quoted(absl::StrCat(
            name, ":",
            absl::StrReplaceAll(command->get_description(), {{":", ","}}))),
        "\n");
    absl::StrAppend(&cases, "    ", name, ")\n");
    if (IsGroup(*command)) {
      absl::StrAppend(&cases, "      ", ZshName(app, *command),
                      "\n      return ;;\n");
      continue;
    }
    absl::StrAppend(&cases, "      flags=(\n", ZshFlags(*command, "        "),
                    "      )\n");
    const NameArguments names = NameArgumentsOf(*command);
    std::string first;
    for (int place = 1; place <= names.count; ++place) {
      absl::StrAppend(&first, place > 1 ? " " : "", "'", place, ":name: _",
                      app.get_name(), "_names ", names.source, "'");
    }
    if (name == "completion") first = "'1:shell:(bash zsh fish)'";
    if (!first.empty()) {
      absl::StrAppend(&cases, "      first=(", first, ")\n");
    }
    cases += "      ;;\n";
  }
  return absl::StrReplaceAll(
      R"zsh(FUNCTION() {
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
)zsh",
      {{"FUNCTION", ZshName(app, group)},
       {"COMMANDS", commands},
       {"COMMON", ZshFlags(app, "    ")},
       {"CASES", cases}});
}

}  // namespace

std::string ZshCompletion(const CLI::App& app) {
  std::string functions;
  for (const CLI::App* command : AllCommands(app)) {
    if (IsGroup(*command)) functions += ZshFunction(app, *command);
  }
  return absl::StrReplaceAll(
      R"zsh(#compdef NAME
_NAME_names() {
  local -a typed=(${(Q)${(z)LBUFFER}}) reach names
  local -i i
  for (( i = 1; i <= $#typed; ++i )); do
    case $typed[i] in
      --inspect) _files; return ;;
      --servers=* | --cluster-id=* | --tls | --tls-*=*) reach+=($typed[i]) ;;
      --servers | --cluster-id | --tls-*) reach+=($typed[i,i+1]) ;;
    esac
  done
  names=(${(f)"$(NAME $@ --names --timeout=1 $reach 2> /dev/null)"})
  compadd -a names
}
FUNCTIONSMAINcompdef _NAME NAME
)zsh",
      {{"NAME", app.get_name()},
       {"FUNCTIONS", functions},
       {"MAIN", ZshFunction(app, app)}});
}

}  // namespace rowhouse::cli
