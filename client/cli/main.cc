#include "client/cli/command_line.h"
#include "kernels/process_memory.h"
#include "proto/wire/process.h"

int main(int argc, char** argv) {
  rowhouse::kernels::KeepFreedMemory();
  rowhouse::wire::ReceiveInLargePieces();
  return rowhouse::cli::Main(argc, argv);
}
