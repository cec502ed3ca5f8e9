/* Particles where people live: the cities of the world attract each other, strip by strip.
 *
 * Every rank owns a strip of longitudes; a city feels the cities of its own strip and of the two
 * next to it (softened gravity, weight = logarithm of the population). Europe, India and China are crowded,
 * the Pacific is empty: the work of the strips differs by orders of magnitude, and no static
 * cutting in equal strips can mend that. The result does not depend on where ranks run.
 *
 * usage: cities FILE STEPS      FILE: lines "longitude latitude population", degrees
 */
#include <math.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  double x, y, weight;
} body;

typedef struct {
  body* bodies;
  int count;
} strip;

static int rank, size;

static void fail(const char* what) {
  fprintf(stderr, "cities: %s\n", what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void* allocate(size_t bytes) {
  void* memory = malloc(bytes == 0 ? 1 : bytes);
  if (memory == NULL) fail("out of memory");
  return memory;
}

/* Rank 0 reads; every rank keeps the cities of its strip, in the order of the file. */
static strip read_strip(const char* path) {
  int total = 0;
  double* table = NULL;
  if (rank == 0) {
    FILE* file = fopen(path, "r");
    if (file == NULL) fail("the file of cities cannot be opened");
    int room = 1024;
    table = allocate(sizeof(double) * 3 * room);
    double* row = table;
    while (fscanf(file, "%lf %lf %lf", row, row + 1, row + 2) == 3) {
      if (++total == room) {
        room *= 2;
        table = realloc(table, sizeof(double) * 3 * room);
        if (table == NULL) fail("out of memory");
      }
      row = table + 3 * total;
    }
    fclose(file);
  }
  MPI_Bcast(&total, 1, MPI_INT, 0, MPI_COMM_WORLD);
  if (rank != 0) table = allocate(sizeof(double) * 3 * total);
  MPI_Bcast(table, 3 * total, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  strip own = {allocate(sizeof(body) * total), 0};
  for (int i = 0; i < total; ++i) {
    const double longitude = table[3 * i];
    int owner = (int)((longitude + 180.0) / 360.0 * size);
    if (owner >= size) owner = size - 1;
    if (owner == rank) {
      own.bodies[own.count++] = (body){longitude, table[3 * i + 1], log(2.0 + table[3 * i + 2])};
    }
  }
  free(table);
  return own;
}

static strip receive_from(int source, int destination, const strip* own) {
  strip other = {NULL, 0};
  MPI_Sendrecv(&own->count, 1, MPI_INT, destination, 1, &other.count, 1, MPI_INT, source, 1,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  other.bodies = allocate(sizeof(body) * other.count);
  MPI_Sendrecv(own->bodies, 3 * own->count, MPI_DOUBLE, destination, 2, other.bodies,
               3 * other.count, MPI_DOUBLE, source, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return other;
}

/* Adds to (ax, ay) of every city what the cities of `from` do; `shift` unrolls the date line. */
static void attract(const strip* own, const strip* from, double shift, double* ax, double* ay) {
  for (int i = 0; i < own->count; ++i) {
    double sum_x = 0.0, sum_y = 0.0;
    for (int j = 0; j < from->count; ++j) {
      const double dx = from->bodies[j].x + shift - own->bodies[i].x;
      const double dy = from->bodies[j].y - own->bodies[i].y;
      const double square = dx * dx + dy * dy + 0.25;
      const double pull = from->bodies[j].weight / (square * sqrt(square));
      sum_x += pull * dx;
      sum_y += pull * dy;
    }
    ax[i] += sum_x;
    ay[i] += sum_y;
  }
}

static void step(strip* own, double* velocity) {
  const int left = (rank + size - 1) % size, right = (rank + 1) % size;
  strip from_left = receive_from(left, right, own), from_right = receive_from(right, left, own);
  double* ax = calloc(own->count + 1, sizeof(double));
  double* ay = calloc(own->count + 1, sizeof(double));
  if (ax == NULL || ay == NULL) fail("out of memory");
  attract(own, own, 0.0, ax, ay);
  if (size > 1) attract(own, &from_left, rank == 0 ? -360.0 : 0.0, ax, ay);
  if (size > 2) attract(own, &from_right, rank == size - 1 ? 360.0 : 0.0, ax, ay);
  const double dt = 1e-5;
  for (int i = 0; i < own->count; ++i) {
    velocity[2 * i] += dt * ax[i];
    velocity[2 * i + 1] += dt * ay[i];
    own->bodies[i].x += dt * velocity[2 * i];
    own->bodies[i].y += dt * velocity[2 * i + 1];
  }
  free(ax);
  free(ay);
  free(from_left.bodies);
  free(from_right.bodies);
}

/* A sum of hashed bits: equal only when every coordinate is equal to the last bit. */
static uint64_t fingerprint(const strip* own) {
  uint64_t sum = 0;
  for (int i = 0; i < own->count; ++i) {
    uint64_t bits[2];
    memcpy(bits, &own->bodies[i], sizeof bits);
    sum += (bits[0] ^ (bits[1] * 0x9e3779b97f4a7c15ULL)) * 0xbf58476d1ce4e5b9ULL;
  }
  return sum;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc != 3 || atoi(argv[2]) < 1) fail("usage: cities FILE STEPS");
  const int steps = atoi(argv[2]);
  strip own = read_strip(argv[1]);
  double* velocity = calloc(2 * own.count + 1, sizeof(double));
  if (velocity == NULL) fail("out of memory");
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  for (int i = 0; i < steps; ++i) step(&own, velocity);
  MPI_Barrier(MPI_COMM_WORLD);
  const double seconds = MPI_Wtime() - start;
  const uint64_t mine = fingerprint(&own);
  uint64_t all = 0;
  MPI_Reduce(&mine, &all, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    printf("cities seconds %.4f steps %d result %016llx\n", seconds, steps,
           (unsigned long long)all);
  }
  free(velocity);
  free(own.bodies);
  MPI_Finalize();
  return 0;
}
