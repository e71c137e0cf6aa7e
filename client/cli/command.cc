#include "client/cli/command.h"

#include <cerrno>
#include <cstring>
#include <iostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/checks.h"
#include "client/cli/exit_code.h"
#include "client/cli/units.h"

namespace rowhouse::cli {
namespace {

CLI::App& AddSubcommand(CLI::App& app, const std::string& name,
                        const std::string& description,
                        const std::string& examples) {
  CLI::App& command = *app.add_subcommand(name, description);
  command.footer("\nExamples:\n" + examples +
                 "\nFlags of all commands: rowhouse --help");
  return command;
}

}  // namespace

CLI::App& AddCommand(CLI::App& app, Context& context, const std::string& name,
                     const std::string& description,
                     const std::string& examples,
                     std::function<absl::StatusOr<int>()> run) {
  CLI::App& command = AddSubcommand(app, name, description, examples);
  command.callback([&context, &command, run = std::move(run)] {
    context.command = PathOf(command);
    context.run = run;
  });
  return command;
}

CLI::App& AddGroup(CLI::App& app, const std::string& name,
                   const std::string& description,
                   const std::string& examples) {
  CLI::App& group = AddSubcommand(app, name, description, examples);
  group.require_subcommand(1);
  return group;
}

std::string PathOf(const CLI::App& command) {
  const CLI::App* const parent = command.get_parent();
  if (parent == nullptr) return "";
  const std::string path = PathOf(*parent);
  return absl::StrCat(path, path.empty() ? "" : " ", command.get_name());
}

CLI::Option& AddTable(CLI::App& command, Context& context) {
  return *command.add_option("table", context.table, "The table's name")
              ->required()
              ->check(CheckTableName)
              ->type_name("TABLE");
}

CLI::Option& AddCount(CLI::App& command, const std::string& flag,
                      int64_t& value, const std::string& description,
                      int64_t least, int64_t most) {
  const auto read = [&value, flag, least, most](const std::string& text) {
    const absl::StatusOr<int64_t> count = ParseCount(text);
    if (!count.ok()) {
      throw CLI::ValidationError(flag, std::string(count.status().message()));
    }
    if (*count < least || *count > most) {
      throw CLI::ValidationError(
          flag, absl::StrCat(*count, ", wanted a count in [", least, ", ", most,
                             "]"));
    }
    value = *count;
  };
  return *command.add_option_function<std::string>(flag, read, description)
              ->type_name("COUNT");
}

void Print(const std::string& text) {
  if (!std::cout) return;
  errno = 0;
  std::cout << text << std::flush;
  // A reader that has enough, `| head -1`, needs no message.
  if (std::cout || errno == EPIPE) return;
  std::cerr << "rowhouse: stdout cannot be written: " << std::strerror(errno)
            << '\n';
}

int PrintFault(const absl::Status& status, const Context& context) {
  std::cerr << "rowhouse: " << status.message() << '\n';
  const std::string advice = AdviceOn(status, context.table, context.command);
  if (!advice.empty()) std::cerr << "  " << advice << '\n';
  return ExitCodeOf(status);
}

}  // namespace rowhouse::cli
