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
  const std::string name = app.get_name();
  std::string cases;
  for (const CLI::App* command : Subcommands(app)) {
    absl::StrAppend(&cases, "    ", command->get_name(), ") words='",
                    Words(*command), "' ;;\n");
  }
  return absl::StrReplaceAll(
      R"(# bash completion of NAME: source <(NAME completion bash)
_NAME() {
  local commands='COMMANDS' common='COMMON'
  local current=${COMP_WORDS[COMP_CWORD]} command= word words=
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case " $commands " in *" $word "*) command=$word; break ;; esac
  done
  case $command in
CASES    *) words=$commands ;;
  esac
  if [[ $command == 'completion' && $current != -* ]]; then
    words='bash zsh fish'
  elif [[ -n $command && $current != -* ]]; then
    return
  fi
  COMPREPLY=($(compgen -W "$words $common" -- "$current"))
  [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace
  return 0
}
complete -o default -F _NAME NAME
)",
      {{"NAME", name},
       {"COMMANDS", absl::StrJoin(CommandsOf(app), " ")},
       {"COMMON", Words(app)},
       {"CASES", cases}});
}

std::string ZshCompletion(const CLI::App& app) {
  const auto add = [](const CLI::App& command, const std::string& indent,
                      std::string& out) {
    for (const FlagName& flag : FlagsOf(command)) {
      absl::StrAppend(
          &out, indent,
          Quoted(absl::StrCat(
              flag.name, flag.takes_value ? "=" : "", "[",
              absl::StrReplaceAll(flag.description, {{"[", ""}, {"]", ""}}),
              "]", flag.takes_value ? ":value:_files" : "")),
          " \\\n");
    }
  };
  const std::string name = app.get_name();
  std::string out = absl::StrCat("#compdef ", name, "\n_", name,
                                 "() {\n  local -a commands=(\n");
  for (const CLI::App* command : Subcommands(app)) {
    absl::StrAppend(
        &out, "    ",
        Quoted(absl::StrCat(
            command->get_name(), ":",
            absl::StrReplaceAll(command->get_description(), {{":", ","}}))),
        "\n");
  }
  out += "  )\n  local -a common=(\n";
  std::string common;
  add(app, "    ", common);
  out += absl::StrReplaceAll(common, {{" \\\n", "\n"}});
  out +=
      "  )\n  if (( CURRENT == 2 )); then\n"
      "    _describe command commands\n    _arguments $common\n"
      "    return\n  fi\n  case $words[2] in\n";
  for (const CLI::App* command : Subcommands(app)) {
    absl::StrAppend(&out, "    ", command->get_name(), ") _arguments \\\n");
    add(*command, "      ", out);
    out += "      $common '*:file:_files' ;;\n";
  }
  absl::StrAppend(&out, "  esac\n}\ncompdef _", name, " ", name, "\n");
  return out;
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
  std::string out;
  for (const CLI::App* command : Subcommands(app)) {
    const std::string& name = command->get_name();
    absl::StrAppend(&out, lead, " -f -n __fish_use_subcommand -a ", name,
                    " -d ", Quoted(command->get_description()), "\n");
    add(*command, absl::StrCat(" -n '__fish_seen_subcommand_from ", name, "'"),
        out);
  }
  add(app, "", out);
  return out;
}

}  // namespace rowhouse::cli
