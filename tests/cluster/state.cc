// Everything a C++ program keeps, across many moves: globals, static objects, thread_local, heap,
// stack, output that is not flushed, exceptions; and what MPI keeps for it: receives that wait,
// messages that nobody has asked for yet, communicators, attributes, datatypes, persistent
// requests, time.
#include <map>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "../mpi/check.h"

namespace {

constexpr int kRounds = 40;

struct Named {
  explicit Named(const char* text) : name{text} { self = this; }
  std::string name;
  Named* self;
};

Named global_object{"an object that was constructed before main and is longer than a small string"};
int counter = 0;
int* pointer_to_counter = &counter;
thread_local int thread_counter = 7;
thread_local std::vector<int> thread_list{1, 2, 3};

int tagged_value(int rank, int round) {
  return rank * 1000 + round;
}

void throw_from_below(int depth) {
  if (depth == 0) {
    throw std::runtime_error{"from below"};
  }
  MPI_Barrier(MPI_COMM_WORLD);  // Moves with this frame on the stack.
  throw_from_below(depth - 1);
}

void check_memory(const std::map<int, std::string>& heap, const int* stack, int round) {
  CHECK(global_object.self == &global_object);
  CHECK(global_object.name.size() > 40);
  CHECK(pointer_to_counter == &counter && *pointer_to_counter == round);
  CHECK(thread_counter == 7 + round);
  CHECK(std::accumulate(thread_list.begin(), thread_list.end(), 0) == 6 + round);
  CHECK(heap.size() == static_cast<std::size_t>(round));
  for (const auto& [key, text] : heap) {
    CHECK(text == "entry number " + std::to_string(key) + " on the heap");
  }
  for (int i = 0; i < 1000; ++i) {
    CHECK(stack[i] == i * 3 + round);
  }
}

void check_exceptions() {
  int caught = 0;
  try {
    throw_from_below(3);
  } catch (const std::runtime_error& error) {
    caught = std::string{error.what()} == "from below" ? 1 : 0;
    MPI_Barrier(MPI_COMM_WORLD);  // The exception is alive here.
  }
  CHECK(caught == 1);
}

struct Kept {
  MPI_Comm copy, half;
  MPI_Datatype column;
  MPI_Request send, receive;
  int key;
  int attribute = 4711;
  int out[16] = {}, in[16] = {};
};

void make(Kept& kept) {
  const int right = (world_rank + 1) % world_size;
  const int left = (world_rank + world_size - 1) % world_size;
  MPI_Comm_dup(MPI_COMM_WORLD, &kept.copy);
  MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, world_rank, &kept.half);
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &kept.key, nullptr);
  MPI_Comm_set_attr(kept.copy, kept.key, &kept.attribute);
  MPI_Type_vector(4, 1, 4, MPI_INT, &kept.column);
  MPI_Type_commit(&kept.column);
  MPI_Send_init(kept.out, 1, kept.column, right, 5, kept.copy, &kept.send);
  MPI_Recv_init(kept.in, 1, kept.column, left, 5, kept.copy, &kept.receive);
}

void check_kept(Kept& kept, int round) {
  const int left = (world_rank + world_size - 1) % world_size;
  int* attribute = nullptr;
  int is_set = 0;
  MPI_Comm_get_attr(kept.copy, kept.key, static_cast<void*>(&attribute), &is_set);
  CHECK(is_set != 0 && attribute == &kept.attribute && *attribute == 4711);
  for (int i = 0; i < 4; ++i) {
    kept.out[i * 4] = tagged_value(world_rank, round) + i;
  }
  MPI_Start(&kept.receive);
  MPI_Barrier(kept.half);  // It waits for its message while both move.
  MPI_Start(&kept.send);
  MPI_Barrier(kept.copy);
  MPI_Wait(&kept.send, MPI_STATUS_IGNORE);
  MPI_Wait(&kept.receive, MPI_STATUS_IGNORE);
  for (int i = 0; i < 16; ++i) {
    CHECK(kept.in[i] == (i % 4 == 0 ? tagged_value(left, round) + i / 4 : 0));
  }
}

// One small and one large message that lie unexpected while their receiver moves.
void check_unexpected(int round) {
  const int right = (world_rank + 1) % world_size;
  const int left = (world_rank + world_size - 1) % world_size;
  std::vector<int> large(60000, tagged_value(world_rank, round)), got(60000);
  int small = tagged_value(world_rank, round), small_got = 0;
  MPI_Request requests[2];
  MPI_Isend(&small, 1, MPI_INT, right, 11, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(large.data(), 60000, MPI_INT, right, 12, MPI_COMM_WORLD, &requests[1]);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Recv(got.data(), 60000, MPI_INT, left, 12, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Recv(&small_got, 1, MPI_INT, MPI_ANY_SOURCE, 11, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  CHECK(small_got == tagged_value(left, round));
  CHECK(got.front() == tagged_value(left, round) && got.back() == got.front());
}

}  // namespace

int main(int argc, char** argv) {
  begin(&argc, &argv);
  std::map<int, std::string> heap;
  int stack[1000];
  Kept kept;
  make(kept);
  double before = MPI_Wtime();
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < 1000; ++i) {
      stack[i] = i * 3 + round;
    }
    printf("line %d of rank %d\n", round, world_rank);
    MPI_Barrier(MPI_COMM_WORLD);
    check_memory(heap, stack, round);
    check_kept(kept, round);
    check_unexpected(round);
    check_exceptions();
    const double now = MPI_Wtime();
    CHECK(now >= before && now < before + 30.0);
    before = now;
    ++counter;
    ++thread_counter;
    thread_list.push_back(1);
    heap[round] = "entry number " + std::to_string(round) + " on the heap";
  }
  MPI_Request_free(&kept.send);
  MPI_Request_free(&kept.receive);
  MPI_Type_free(&kept.column);
  MPI_Comm_free(&kept.half);
  MPI_Comm_free(&kept.copy);
  return end();
}
