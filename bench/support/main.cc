#include "bench/support/run.h"
#include "kernels/process_memory.h"

int main(int argc, char** argv) {
  rowhouse::kernels::KeepFreedMemory();  // As the tools do.
  return rowhouse::bench::Main(argc, argv);
}
