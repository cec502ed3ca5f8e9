/* How calls that complete several requests, or none, tell what has failed: which handler is called,
 * with which code, and what the statuses say. And which functions of generalized requests are called
 * by which call. MPI_COMM_SELF keeps its handler: none of it is an error of nothing. */
#include "check.h"

enum { kUntouched = 4711, kRequests = 4 };

static int calls_of[2], code_of[2];

static void note(int handler, int code) {
  ++calls_of[handler];
  MPI_Error_class(code, &code_of[handler]);
}
static void on_first(MPI_Comm* comm, int* code, ...) {
  (void)comm;
  note(0, *code);
}
static void on_second(MPI_Comm* comm, int* code, ...) {
  (void)comm;
  note(1, *code);
}

static MPI_Comm comm_with(MPI_Comm_errhandler_function* function) {
  MPI_Comm comm;
  MPI_Errhandler handler;
  MPI_Comm_dup(MPI_COMM_SELF, &comm);
  MPI_Comm_create_errhandler(function, &handler);
  MPI_Comm_set_errhandler(comm, handler);
  MPI_Errhandler_free(&handler);
  return comm;
}

static int class_of(int code) {
  int error_class = -1;
  MPI_Error_class(code, &error_class);
  return error_class;
}

static int into[kRequests];
static MPI_Request q[kRequests];
static MPI_Status s[kRequests];

/* A receive that ends well, one in `second` and one in `first` that are too short, and a send. */
static void begin_some(MPI_Comm first, MPI_Comm second) {
  static int from[2] = {8, 9};
  MPI_Irecv(&into[0], 1, MPI_INT, 0, 1, first, &q[0]);
  MPI_Irecv(&into[1], 1, MPI_INT, 0, 2, second, &q[1]);
  MPI_Irecv(&into[2], 1, MPI_INT, 0, 3, first, &q[2]);
  MPI_Isend(from, 1, MPI_INT, 0, 1, first, &q[3]);
  MPI_Send(from, 2, MPI_INT, 0, 2, second);
  MPI_Send(from, 2, MPI_INT, 0, 3, first);
  for (int i = 0; i < kRequests; ++i) {
    s[i].MPI_ERROR = kUntouched;
  }
  for (int i = 0; i < 2; ++i) {
    calls_of[i] = 0;
    code_of[i] = MPI_SUCCESS;
  }
}

/* The first that failed is of `second`: that handler was called, once, with its code. */
static void check_told(int has_statuses) {
  CHECK(calls_of[0] == 0 && calls_of[1] == 1 && code_of[1] == MPI_ERR_TRUNCATE);
  for (int i = 0; i < kRequests; ++i) {
    const int wanted = i == 1 || i == 2 ? MPI_ERR_TRUNCATE : MPI_SUCCESS;
    CHECK(has_statuses ? class_of(s[i].MPI_ERROR) == wanted : s[i].MPI_ERROR == kUntouched);
  }
}

static void test_all(void) {
  for (int way = 0; way < 4; ++way) {
    MPI_Comm first = comm_with(on_first), second = comm_with(on_second);
    MPI_Status* const statuses = way % 2 == 0 ? s : MPI_STATUSES_IGNORE;
    begin_some(first, second);
    MPI_Comm_free(&first); /* They live as long as their requests do. */
    MPI_Comm_free(&second);
    if (way < 2) {
      FAILS(MPI_ERR_IN_STATUS, MPI_Waitall(kRequests, q, statuses));
    } else {
      int flag = 0, error = MPI_SUCCESS;
      while (!flag) {
        error = MPI_Testall(kRequests, q, &flag, statuses);
      }
      FAILS(MPI_ERR_IN_STATUS, error);
    }
    check_told(way % 2 == 0);
    for (int i = 0; i < kRequests; ++i) {
      CHECK(q[i] == MPI_REQUEST_NULL);
    }
  }
}

static void test_some(void) {
  for (int way = 0; way < 4; ++way) {
    MPI_Comm first = comm_with(on_first), second = comm_with(on_second);
    MPI_Status* const statuses = way % 2 == 0 ? s : MPI_STATUSES_IGNORE;
    int count = 0, indices[kRequests], flag = 0;
    begin_some(first, second);
    while (!flag) { /* Then all are told of at once. */
      int outcome = MPI_Request_get_status_all(kRequests, q, &flag, MPI_STATUSES_IGNORE);
      CHECK(class_of(outcome) == (flag ? MPI_ERR_IN_STATUS : MPI_SUCCESS));
    }
    check_told(0);
    calls_of[1] = 0;
    FAILS(MPI_ERR_IN_STATUS, way < 2 ? MPI_Waitsome(kRequests, q, &count, indices, statuses)
                                     : MPI_Testsome(kRequests, q, &count, indices, statuses));
    CHECK(count == kRequests);
    for (int i = 0; i < kRequests; ++i) {
      CHECK(indices[i] == i && q[i] == MPI_REQUEST_NULL);
    }
    check_told(way % 2 == 0);
    MPI_Comm_free(&first);
    MPI_Comm_free(&second);
  }
}

/* Asked without completing anything, as often as one likes. */
static void test_asked(void) {
  MPI_Comm first = comm_with(on_first), second = comm_with(on_second);
  int count = 0, index = -1, indices[kRequests], flag = 0;
  begin_some(first, second);
  while (!flag) {
    FAILS(MPI_SUCCESS, MPI_Request_get_status(q[0], &flag, s));
  }
  for (int way = 0; way < 4; ++way) {
    for (int i = 0; i < kRequests; ++i) {
      s[i].MPI_ERROR = kUntouched;
    }
    calls_of[1] = 0;
    MPI_Status* const statuses = way % 2 == 0 ? s : MPI_STATUSES_IGNORE;
    if (way < 2) {
      FAILS(MPI_ERR_IN_STATUS, MPI_Request_get_status_all(kRequests, q, &flag, statuses));
    } else {
      FAILS(MPI_ERR_IN_STATUS,
            MPI_Request_get_status_some(kRequests, q, &count, indices, statuses));
      CHECK(count == kRequests && indices[kRequests - 1] == kRequests - 1);
    }
    check_told(way % 2 == 0);
  }
  calls_of[1] = 0;
  FAILS(MPI_ERR_TRUNCATE, MPI_Request_get_status(q[1], &flag, MPI_STATUS_IGNORE));
  CHECK(flag && calls_of[0] == 0 && calls_of[1] == 1);
  FAILS(MPI_ERR_TRUNCATE, MPI_Request_get_status_any(2, &q[1], &index, &flag, s));
  CHECK(flag && index == 0 && calls_of[0] == 0 && calls_of[1] == 2);
  FAILS(MPI_ERR_TRUNCATE, MPI_Waitany(2, &q[1], &index, s));
  CHECK(index == 0 && calls_of[0] == 0 && calls_of[1] == 3);
  FAILS(MPI_ERR_TRUNCATE, MPI_Wait(&q[2], MPI_STATUS_IGNORE));
  CHECK(calls_of[0] == 1 && calls_of[1] == 3);
  MPI_Waitall(kRequests, q, MPI_STATUSES_IGNORE);
  MPI_Comm_free(&first);
  MPI_Comm_free(&second);
}

/* MPI_ERROR is the program's where nothing has failed. */
static void test_untouched(void) {
  for (int way = 0; way < 6; ++way) {
    int from = 5, count = 0, indices[2], flag = 0;
    for (int i = 0; i < 2; ++i) {
      s[i].MPI_ERROR = kUntouched;
    }
    MPI_Irecv(&into[0], 1, MPI_INT, 0, 1, MPI_COMM_SELF, &q[0]);
    MPI_Isend(&from, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &q[1]);
    while (!flag) {
      MPI_Request_get_status_all(2, q, &flag, MPI_STATUSES_IGNORE);
    }
    switch (way) {
      case 0:
        MPI_Waitall(2, q, s);
        break;
      case 1:
        MPI_Testall(2, q, &flag, s);
        break;
      case 2:
        MPI_Waitsome(2, q, &count, indices, s);
        break;
      case 3:
        MPI_Testsome(2, q, &count, indices, s);
        break;
      case 4:
        MPI_Request_get_status_all(2, q, &flag, s);
        break;
      default:
        MPI_Request_get_status_some(2, q, &count, indices, s);
    }
    CHECK(s[0].MPI_ERROR == kUntouched && s[1].MPI_ERROR == kUntouched);
    CHECK(s[0].MPI_SOURCE == 0 && s[0].MPI_TAG == 1);
    MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
  }
}

/* What does not start is told to the handler of its communicator, and can be started again. */
static void test_start(void) {
  static char buffer[100 + MPI_BSEND_OVERHEAD];
  MPI_Comm comm = comm_with(on_first);
  int from = 3, size = 0;
  void* detached = NULL;
  MPI_Request send, receive;
  calls_of[0] = 0;
  MPI_Bsend_init(&from, 1, MPI_INT, 0, 1, comm, &send);
  MPI_Recv_init(&into[0], 1, MPI_INT, 0, 1, comm, &receive);
  FAILS(MPI_ERR_BUFFER, MPI_Start(&send)); /* There is none. */
  CHECK(calls_of[0] == 1);
  FAILS(MPI_ERR_REQUEST, MPI_Cancel(&send)); /* It is not active. */
  CHECK(calls_of[0] == 2);
  MPI_Buffer_attach(buffer, sizeof buffer);
  CHECK(MPI_Start(&send) == MPI_SUCCESS && MPI_Start(&receive) == MPI_SUCCESS);
  FAILS(MPI_ERR_REQUEST, MPI_Start(&receive));
  FAILS(MPI_ERR_REQUEST, MPI_Startall(1, &receive));
  CHECK(calls_of[0] == 4);
  MPI_Wait(&receive, MPI_STATUS_IGNORE);
  MPI_Wait(&send, MPI_STATUS_IGNORE);
  CHECK(into[0] == 3);
  MPI_Request_free(&send);
  MPI_Request_free(&receive);
  MPI_Buffer_detach(&detached, &size);
  MPI_Comm_free(&comm);
}

static int queried, freed, cancelled, outcome_of_functions;

static int query(void* extra, MPI_Status* status) {
  (void)extra;
  MPI_Status_set_elements(status, MPI_INT, 1);
  MPI_Status_set_cancelled(status, 0);
  ++queried;
  return MPI_SUCCESS;
}
static int release(void* extra) {
  CHECK(extra == &freed);
  ++freed;
  return outcome_of_functions;
}
static int cancel(void* extra, int is_complete) {
  (void)extra, (void)is_complete;
  ++cancelled;
  return outcome_of_functions;
}

/* Who gives it up does not ask: the later of the two calls frees it, and no other call does. */
static void test_generalized(void) {
  MPI_Request request, copy;
  freed = queried = 0;
  MPI_Grequest_start(query, release, cancel, &freed, &request);
  copy = request;
  MPI_Request_free(&request);
  CHECK(request == MPI_REQUEST_NULL && freed == 0);
  MPI_Irecv(&into[0], 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_SELF, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK(freed == 0);
  CHECK(MPI_Grequest_complete(copy) == MPI_SUCCESS && freed == 1 && queried == 0);
  MPI_Grequest_start(query, release, cancel, &freed, &request);
  MPI_Grequest_complete(request);
  CHECK(freed == 1);
  CHECK(MPI_Request_free(&request) == MPI_SUCCESS && freed == 2 && queried == 0);
  /* Two at once, in the other order. */
  MPI_Request two[2], copies[2];
  for (int i = 0; i < 2; ++i) {
    MPI_Grequest_start(query, release, cancel, &freed, &two[i]);
    copies[i] = two[i];
    MPI_Request_free(&two[i]);
  }
  MPI_Grequest_complete(copies[0]);
  CHECK(freed == 3);
  MPI_Grequest_complete(copies[1]);
  CHECK(freed == 4 && queried == 0);
}

/* An error of a function of the program is that of the call, and goes through a handler. */
static void test_generalized_errors(void) {
  MPI_Request request, copy;
  MPI_Errhandler handler;
  MPI_Comm_create_errhandler(on_first, &handler);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
  MPI_Errhandler_free(&handler);
  calls_of[0] = freed = cancelled = 0;
  outcome_of_functions = MPI_ERR_OTHER;
  MPI_Grequest_start(query, release, cancel, &freed, &request);
  FAILS(MPI_ERR_OTHER, MPI_Cancel(&request));
  CHECK(cancelled == 1 && calls_of[0] == 1);
  copy = request;
  MPI_Request_free(&request);
  FAILS(MPI_ERR_OTHER, MPI_Grequest_complete(copy));
  CHECK(freed == 1 && calls_of[0] == 2);
  MPI_Grequest_start(query, release, cancel, &freed, &request);
  MPI_Grequest_complete(request);
  FAILS(MPI_ERR_OTHER, MPI_Request_free(&request));
  CHECK(freed == 2 && calls_of[0] == 3);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  test_all();
  test_some();
  test_asked();
  test_untouched();
  test_start();
  test_generalized();
  test_generalized_errors();
  return end();
}
