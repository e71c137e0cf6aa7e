#include "client/cli/command_line.h"

int main(int argc, char** argv) { return rowhouse::cli::Main(argc, argv); }
