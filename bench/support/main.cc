#include "bench/support/run.h"

int main(int argc, char** argv) { return rowhouse::bench::Main(argc, argv); }
