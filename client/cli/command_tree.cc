#include "client/cli/command_tree.h"

namespace rowhouse::cli {

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

std::vector<const CLI::App*> Subcommands(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

bool IsGroup(const CLI::App& command) { return !Subcommands(command).empty(); }

std::vector<const CLI::App*> AllCommands(const CLI::App& app) {
  std::vector<const CLI::App*> all;
  for (const CLI::App* command : Subcommands(app)) {
    all.push_back(command);
    const std::vector<const CLI::App*> below = AllCommands(*command);
    all.insert(all.end(), below.begin(), below.end());
  }
  return all;
}

NameArguments NameArgumentsOf(const CLI::App& command) {
  NameArguments names;
  if (command.get_name() == "create") return names;  // Those are new.
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_positional()) continue;
    const std::string type = option->get_type_name();
    if (type != "TABLE" && type != "CHECKPOINT") continue;
    names.source = type == "TABLE" ? "list" : "checkpoint list";
    ++names.count;
  }
  return names;
}

}  // namespace rowhouse::cli
