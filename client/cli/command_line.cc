#include "client/cli/command_line.h"

#include <cmath>
#include <exception>
#include <iostream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/command_tree.h"
#include "client/cli/exit_code.h"
#include "client/cli/suggest.h"
#include "client/cli/terminal.h"

namespace rowhouse::cli {
namespace {

constexpr char kFooter[] =
    "\nExit codes:\n"
    "  0    done\n"
    "  1    the servers refused the call, or it failed, or stdout cannot be "
    "written\n"
    "  2    wrong arguments, or a file that cannot be used\n"
    "  3    a server is away or did not answer in time\n"
    "  130  interrupted\n"
    "\nExamples:\n"
    "  export ROWHOUSE_SERVERS=10.0.0.5:7070,10.0.0.6:7070\n"
    "  rowhouse status\n"
    "  rowhouse create --help\n";

void AddSharedFlags(CLI::App& app, Context& context) {
  ConnectionFlags& connection = context.connection;
  app.add_option("--servers", connection.servers,
                 "All servers of the cluster, in shard order")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->envname("ROWHOUSE_SERVERS")
      ->type_name("HOST:PORT,...");
  app.add_option("--cluster-id", connection.cluster_id,
                 "Refuses servers of a cluster of another name")
      ->type_name("NAME");
  app.add_option("--timeout", connection.timeout_seconds,
                 "How long servers may take to answer; when not given 10, 60 "
                 "for a call of `import` or `replay`, and as long as it takes "
                 "for the files of a checkpoint")
      ->check([](const std::string& text) {
        char* end = nullptr;
        const double seconds = std::strtod(text.c_str(), &end);
        const bool good = *end == '\0' && seconds > 0 && seconds <= 1e6;
        return good ? std::string()
                    : absl::StrCat("'", text, "', wanted seconds above 0");
      })
      ->type_name("SECONDS");
  app.add_flag("--json", context.json, "Output for machines, on stdout");
  app.add_flag("--quiet,-q", context.quiet, "No progress on stderr");
  app.add_flag("--tls", connection.tls,
               "Connects with TLS, by the system's authorities");
  app.add_option("--tls-ca", connection.tls_ca,
                 "TLS by these authorities instead; PEM")
      ->type_name("FILE");
  app.add_option("--tls-certificate", connection.tls_certificate,
                 "The certificate to show; PEM")
      ->type_name("FILE");
  app.add_option("--tls-key", connection.tls_key, "Its private key; PEM")
      ->type_name("FILE");
  app.add_option("--tls-server-name", connection.tls_server_name,
                 "The name that the servers' certificates have")
      ->type_name("NAME");
}

const CLI::App& ChosenCommand(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? app : ChosenCommand(*chosen.front());
}

// `; did you mean 'status'?`, for the first word that was not understood.
std::string Guess(const CLI::App& app) {
  const std::vector<std::string> words = app.remaining(true);
  if (words.empty()) return "";
  const CLI::App& command = ChosenCommand(app);
  std::string word = words[0];
  std::vector<std::string> known;
  if (!word.starts_with("-")) {
    known = CommandsOf(command);
  } else {
    word = word.substr(0, word.find('='));
    for (const CLI::App* owner : {&command, &app}) {
      for (const FlagName& flag : FlagsOf(*owner)) known.push_back(flag.name);
    }
  }
  const std::string nearest = Nearest(word, known);
  return nearest.empty() ? "" : absl::StrCat("; did you mean ", nearest, "?");
}

int RefuseArguments(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& command = ChosenCommand(app);
  const std::vector<std::string> words = app.remaining(true);
  std::string message = error.what();
  const std::string path = PathOf(command);
  const std::string of = path.empty() ? "" : " of " + path;
  const bool group = command.get_require_subcommand_min() > 0;
  if (group && !words.empty() && !words[0].starts_with("-")) {
    message = absl::StrCat("'", words[0], "' is not a command", of);
  } else if (!words.empty()) {
    message = absl::StrCat("'", words[0], "' is not an argument", of);
  }
  std::cerr << "rowhouse: " << message << Guess(app) << "\n  `rowhouse "
            << (path.empty() ? "" : path + " ")
            << "--help` tells what there is\n";
  return kBadArguments;
}

int RunChosen(const Context& context) {
  const absl::StatusOr<int> ended = context.run();
  if (ended.ok()) return *ended;
  if (Interrupted() && absl::IsCancelled(ended.status())) {
    std::cerr << "rowhouse: interrupted; " << ended.status().message() << '\n';
    return kInterrupted;
  }
  return PrintFault(ended.status(), context);
}

// The first flag that ends with its `=`: it would take the next word.
std::string EmptyFlag(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--") break;
    if (word.starts_with("--") && word.ends_with('=')) {
      return std::string(word.substr(0, word.size() - 1));
    }
  }
  return "";
}

int Run(int argc, char** argv) {
  CLI::App app;
  Context context;
  const std::string empty = EmptyFlag(argc, argv);
  if (empty == "--servers") return PrintFault(NoServers(), context);
  if (!empty.empty()) {
    return PrintFault(BadArgument(empty + " is empty"), context);
  }
  AddCommands(app, context);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {  // --help, --version.
    std::ostringstream text;
    const int code = app.exit(asked, text, std::cerr);
    Print(text.str());
    return code;
  } catch (const CLI::ParseError& error) {
    return RefuseArguments(app, error);
  }
  return RunChosen(context);
}

}  // namespace

void AddCommands(CLI::App& app, Context& context) {
  app.name("rowhouse");
  app.description("Looks at a Rowhouse cluster and works on its tables.");
  app.footer(kFooter);
  app.set_version_flag("--version", "rowhouse " ROWHOUSE_VERSION,
                       "Prints the version");
  app.set_help_flag("--help,-h", "Prints this text");
  app.fallthrough();  // Shared flags may stand after the command.
  app.require_subcommand(1);
  AddSharedFlags(app, context);
  AddStatus(app, context);
  AddList(app, context);
  AddDescribe(app, context);
  AddCreate(app, context);
  AddImport(app, context);
  AddPull(app, context);
  AddDigest(app, context);
  AddEvents(app, context);
  AddReset(app, context);
  AddDelete(app, context);
  AddCheckpoint(app, context);
  AddRecord(app, context);
  AddReplay(app, context);
  AddBench(app, context);
  AddCompletion(app, context);
}

int Main(int argc, char** argv) {
  PrepareStreams();
  const int code = Run(argc, argv);
  return code == kOk && !std::cout ? kRefused : code;
}

}  // namespace rowhouse::cli
