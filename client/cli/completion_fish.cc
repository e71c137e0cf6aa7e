#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "client/cli/command.h"
#include "client/cli/command_tree.h"
#include "client/cli/completion.h"

namespace rowhouse::cli {
namespace {

// Of all commands.
std::string ValueFlags(const CLI::App& app) {
  std::vector<std::string> names;
  const auto add = [&](const CLI::App& command) {
    for (const FlagName& flag : FlagsOf(command)) {
      if (flag.takes_value) names.push_back(flag.name);
    }
  };
  add(app);
  for (const CLI::App* command : AllCommands(app)) add(*command);
  return absl::StrJoin(names, " ");
}

}  // namespace

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
  std::vector<std::string> groups;
  std::string commands;
  for (const CLI::App* command : AllCommands(app)) {
    const std::string path = PathOf(*command);
    if (IsGroup(*command)) groups.push_back(Quoted(path));
    // Its parent's words stand, and so it may come next.
    absl::StrAppend(&commands, lead, " -f -n '__", app.get_name(), "_in ",
                    PathOf(*command->get_parent()), "' -a ",
                    command->get_name(), " -d ",
                    Quoted(command->get_description()), "\n");
    const std::string in = absl::StrCat("__", app.get_name(), "_in ", path);
    add(*command, absl::StrCat(" -n '", in, "'"), commands);
    const NameArguments names = NameArgumentsOf(*command);
    if (names.count == 0) continue;
    absl::StrAppend(&commands, lead, " -f -n '", in, "; and __", app.get_name(),
                    "_given_below ", names.count, "' -a '(__", app.get_name(),
                    "_names ", names.source, ")'\n");
  }
  std::string out = absl::StrReplaceAll(
      R"(function __NAME_typed
  set -l command
  set -l given 0
  set -l before
  for word in (commandline -opc)[2..-1]
    if contains -- "$before" VALUED
      set before
      continue
    end
    set before $word
    if test $word = --inspect
      set given 9
    else if string match -q -- '-*' $word
      continue
    else if test -z "$command"; or contains -- "$command" GROUPS
      set command (string trim "$command $word")
    else
      set given (math $given + 1)
    end
  end
  echo $command
  echo $given
end
function __NAME_in
  test (__NAME_typed)[1] = "$argv"
end
function __NAME_given_below
  test (__NAME_typed)[2] -lt $argv[1]
end
function __NAME_names
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
  command $typed[1] $argv --names --timeout=1 $reach 2> /dev/null
end
)",
      {{"NAME", app.get_name()},
       {"GROUPS", absl::StrJoin(groups, " ")},
       {"VALUED", ValueFlags(app)}});
  absl::StrAppend(&out, commands, lead, " -f -n '__", app.get_name(),
                  "_in completion' -a 'bash zsh fish'\n");
  add(app, "", out);
  return out;
}

}  // namespace rowhouse::cli
