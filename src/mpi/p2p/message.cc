// Point-to-point messages: checks, packing, starting.
#include "mpi/p2p/message.h"

#include "mpi/p2p/buffered.h"
#include "net/transport.h"
#include "runtime/runtime.h"

namespace sterna::mpi {

int check_comm(Call& call, MPI_Comm handle) noexcept {
  call.comm = find_comm(call.state, handle);
  if (call.comm != nullptr) [[likely]] {
    return MPI_SUCCESS;
  }
  return handle == MPI_COMM_NULL
             ? call.fail(MPI_ERR_COMM, "the communicator is MPI_COMM_NULL")
             : call.fail(MPI_ERR_COMM, "%p is not a communicator (freed, or never one)",
                         static_cast<void*>(handle));
}

int check_data(const Call& call, const void* buffer, MPI_Count count,
               MPI_Datatype datatype) noexcept {
  if (count < 0) {
    return call.fail(MPI_ERR_COUNT, "the count is %lld, it must not be negative",
                     static_cast<long long>(count));
  }
  const Datatype* type = find_datatype(datatype);
  if (type == nullptr) {
    return datatype == MPI_DATATYPE_NULL
               ? call.fail(MPI_ERR_TYPE, "the datatype is MPI_DATATYPE_NULL")
               : call.fail(MPI_ERR_TYPE, "%p is not a datatype (freed, or never one)",
                           static_cast<void*>(datatype));
  }
  if (!type->is_predefined && !type->is_committed) {
    return call.fail(MPI_ERR_TYPE, "the datatype has not been committed (MPI_Type_commit)");
  }
  if (buffer == nullptr && count > 0 && type->bytes > 0 && type->is_predefined) {
    return call.fail(MPI_ERR_BUFFER, "the buffer is null, the count is %lld",
                     static_cast<long long>(count));
  }
  if (buffer == MPI_IN_PLACE) {
    return call.fail(MPI_ERR_BUFFER, "MPI_IN_PLACE is not allowed here");
  }
  return MPI_SUCCESS;
}

namespace {

int check_peer(const Call& call, int peer) noexcept {
  return call.fail(MPI_ERR_RANK, "the rank is %d, the communicator has ranks 0 to %d", peer,
                   static_cast<int>(call.comm->peers().size) - 1);
}

bool is_member(const Call& call, int peer) noexcept {
  return static_cast<std::uint32_t>(peer) < call.comm->peers().size;
}

}  // namespace

int check_send(const Call& call, const Side& side) noexcept {
  const Datatype* type = find_datatype(side.datatype);
  // The common case in one test; whatever is odd is looked at again.
  if (type != nullptr && type->is_predefined && side.count > 0 && side.buffer > MPI_IN_PLACE &&
      is_member(call, side.peer) && side.tag >= 0) [[likely]] {
    return MPI_SUCCESS;
  }
  if (const int error = check_data(call, side.buffer, side.count, side.datatype)) {
    return error;
  }
  if (!is_member(call, side.peer) && side.peer != MPI_PROC_NULL) {
    return check_peer(call, side.peer);
  }
  if (side.tag < 0) {
    return call.fail(MPI_ERR_TAG, "the tag is %d, tags to send with are 0 to %d", side.tag,
                     kTagMax);
  }
  return MPI_SUCCESS;
}

int check_pattern(const Call& call, int source, int tag) noexcept {
  if (!is_member(call, source) && source != MPI_PROC_NULL && source != MPI_ANY_SOURCE) {
    return check_peer(call, source);
  }
  if (tag < 0 && tag != MPI_ANY_TAG) {
    return call.fail(MPI_ERR_TAG, "the tag is %d, tags are 0 to %d or MPI_ANY_TAG", tag, kTagMax);
  }
  return MPI_SUCCESS;
}

int check_receive(const Call& call, const Side& side) noexcept {
  const int error = check_data(call, side.buffer, side.count, side.datatype);
  return error != MPI_SUCCESS ? error : check_pattern(call, side.peer, side.tag);
}

bool Bytes::for_send(const Side& side, std::uint32_t to_rank) noexcept {
  const TypedBuffer typed = TypedBuffer::of(side.buffer, side.count, *find_datatype(side.datatype));
  const std::uint64_t bytes = typed.bytes();
  if (typed.is_one_run()) [[likely]] {
    buffer_ = net::Buffer::of(typed.first_byte(), bytes);
    return true;
  }
  const runtime::RankContext& context = *state_.context;
  if (layout_ != nullptr && context.transport->takes_layout(*context.endpoint, to_rank, bytes)) {
    layout_->describe(typed);
    buffer_ = net::Buffer::of(*layout_, bytes);
    return true;
  }
  packed_ = allocate_packed(state_, bytes);
  buffer_ = net::Buffer::of(packed_, bytes);
  return packed_ != nullptr && pack(typed, 0, {packed_, bytes}) == bytes;
}

bool Bytes::for_receive(const Side& side, std::uint64_t laid_out_max) noexcept {
  const TypedBuffer typed = TypedBuffer::of(side.buffer, side.count, *find_datatype(side.datatype));
  const std::uint64_t bytes = typed.bytes();
  if (typed.is_one_run()) [[likely]] {
    buffer_ = net::Buffer::of(typed.first_byte(), bytes);
    return true;
  }
  if (layout_ != nullptr && bytes <= laid_out_max && state_.context->endpoint->is_fixed) {
    layout_->describe(typed);
    buffer_ = net::Buffer::of(*layout_, bytes);
    return true;
  }
  side_ = side;
  packed_ = allocate_packed(state_, bytes);
  buffer_ = net::Buffer::of(packed_, bytes);
  return packed_ != nullptr;
}

void Bytes::deliver(std::uint64_t bytes) noexcept {
  if (packed_ != nullptr) {
    (void)unpack(TypedBuffer::of(side_.buffer, side_.count, *find_datatype(side_.datatype)), 0,
                 {packed_, bytes});
  }
}

std::byte* Bytes::take_packed() noexcept {
  std::byte* packed = packed_;
  packed_ = nullptr;
  return packed;
}

int start_message(RankState& state, Request& request) noexcept {
  const MessageArguments& a = request.arguments;
  const Side side{a.buffer, a.count, a.datatype, a.peer, a.tag};
  request.is_active = true;
  deallocate_packed(state, request.packed);  // Of the last start.
  request.packed = nullptr;
  runtime::RankContext& context = *state.context;
  const bool is_send = request.type == RequestType::send;
  // Who computes next has them in one piece, for others to read and to write meanwhile.
  const bool waits = context.transport->waits_at_once();
  Bytes bytes{state, is_send && !waits ? nullptr : &request.layout};
  if (is_send) {
    if (!bytes.for_send(side, target_of(*request.comm, a.peer, a.tag).rank)) {
      return MPI_ERR_NO_MEM;
    }
    request.send.done.reset();
    request.send.may_be_left = true;
    if (bytes.buffer().bytes >= kLargeBytes) {
      if (runtime::Background* const background = context.runtime->background()) {
        background->expect_answer(target_of(*request.comm, a.peer, a.tag).rank,
                                  bytes.buffer().bytes);
      }
    }
    context.transport->send(*context.endpoint, request.send,
                            target_of(*request.comm, a.peer, a.tag), bytes.buffer(),
                            a.mode == MessageMode::synchronous ? net::SendMode::synchronous
                            : a.mode == MessageMode::ready     ? net::SendMode::ready
                                                               : net::SendMode::standard);
    if (request.send.lacked_room) [[unlikely]] {
      // Who starts one after the other does not poll between them. Each that is announced costs
      // both sides two packets more.
      (void)context.progress->poll(threads::SchedulingPoint::enter);
    }
  } else {
    if (!bytes.for_receive(side, waits ? ~std::uint64_t{0} : kLargeReceiveBytes - 1)) {
      return MPI_ERR_NO_MEM;
    }
    request.receive.done.reset();
    // Those of which somebody hears while the program computes.
    request.receive.may_be_written = bytes.buffer().bytes >= kLargeReceiveBytes;
    context.transport->receive(*context.endpoint, request.receive,
                               pattern_of(*request.comm, a.peer, a.tag), bytes.buffer());
  }
  const bool is_done = is_send ? request.send.done.done() : request.receive.done.done();
  if (bytes.buffer().bytes >= (is_send ? kLargeBytes : kLargeReceiveBytes)) {
    if (runtime::Background* const background = context.runtime->background()) {
      if (!is_done) {
        background->want();
      } else {
        is_send ? background->watch_sent() : background->watch();
      }
    }
  }
  if (runtime::Background* const background = context.runtime->background();
      is_send && background != nullptr) {
    background->has_sent();
  }
  request.packed = bytes.take_packed();
  return MPI_SUCCESS;
}

}  // namespace sterna::mpi
