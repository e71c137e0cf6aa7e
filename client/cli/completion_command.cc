// Completion scripts for shells.

#include <memory>
#include <string>

#include "client/cli/command.h"
#include "client/cli/completion.h"

namespace rowhouse::cli {
namespace {

constexpr char kExamples[] =
    "  source <(rowhouse completion bash)\n"
    "  rowhouse completion zsh > ~/.zfunc/_rowhouse\n"
    "  rowhouse completion fish > ~/.config/fish/completions/rowhouse.fish\n";

}  // namespace

void AddCompletion(CLI::App& app, Context& context) {
  const auto shell = std::make_shared<std::string>();
  CLI::App& command = AddCommand(
      app, context, "completion", "Prints a shell's completion script",
      kExamples, [&app, shell]() -> absl::StatusOr<int> {
        Print(*shell == "bash"  ? BashCompletion(app)
              : *shell == "zsh" ? ZshCompletion(app)
                                : FishCompletion(app));
        return 0;
      });
  command.add_option("shell", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}))
      ->type_name("SHELL");
}

}  // namespace rowhouse::cli
