#ifndef ROWHOUSE_PROTO_WIRE_PROCESS_H_
#define ROWHOUSE_PROTO_WIRE_PROCESS_H_

namespace rowhouse::wire {

/// Makes gRPC receive messages in few large pieces rather than many of 8 and 64
/// KiB: a push then takes a fifth less CPU time. Sets the environment's
/// GRPC_EXPERIMENTS to `-tcp_read_chunks`, unless it is set. For `main`, before
/// gRPC is used; what knows no such experiment logs so and goes on.
void ReceiveInLargePieces();

}  // namespace rowhouse::wire

#endif  // ROWHOUSE_PROTO_WIRE_PROCESS_H_
