/* System calls that may block, without holding other threads up.
 *
 * Each does what the call of its name does, with its values; -1 with errno where that fails (after
 * these calls use *sterna_errno(), control.h). While it waits the other threads of the worker run.
 * It is a cancellation point: a cancelled thread ends there, before the call or while it waits. On
 * kernel threads and in mobile ranks each is the plain call.
 *
 * How: what is ready is taken at once by the caller itself (MSG_DONTWAIT, RWF_NOWAIT), which costs
 * what the plain call costs. Else the thread waits for the descriptor (epoll), no kernel thread
 * with it, and timeouts of sockets (SO_RCVTIMEO, SO_SNDTIMEO) hold. What cannot be waited for so,
 * files that are read from a disk, fsync, open, goes to a spare kernel thread; a cancellation that
 * comes meanwhile counts afterwards, at the next cancellation point. Descriptors need not be
 * O_NONBLOCK; those that are return EAGAIN as ever (regular files never do).
 *
 * EINTR is never returned: signals are no affair of user threads, an interrupted call goes on. A
 * descriptor must not be closed while another thread waits for it: as in POSIX, what happens then
 * is not said; shutdown() ends such waits. All switch; inside a quick service (rpc.h) what would
 * block fails with EDEADLK.
 */
#ifndef STERNA_IO_H
#define STERNA_IO_H

#include <poll.h>
#include <stddef.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>

#include "sterna/status.h"

/* <time.h> declares it to C99 only where POSIX is asked for. */
struct timespec;

#ifdef __cplusplus
extern "C" {
#endif

ssize_t sterna_read(int fd, void* buffer, size_t bytes) STERNA_NOEXCEPT;
ssize_t sterna_readv(int fd, const struct iovec* parts, int count) STERNA_NOEXCEPT;
ssize_t sterna_pread(int fd, void* buffer, size_t bytes, off_t offset) STERNA_NOEXCEPT;

/* As ever, to a pipe or a stream socket that is not O_NONBLOCK all is written before they return,
 * unless there is an error after a part of it. */
ssize_t sterna_write(int fd, const void* data, size_t bytes) STERNA_NOEXCEPT;
ssize_t sterna_writev(int fd, const struct iovec* parts, int count) STERNA_NOEXCEPT;
ssize_t sterna_pwrite(int fd, const void* data, size_t bytes, off_t offset) STERNA_NOEXCEPT;

/* All of it, in as many calls as that takes, also of a descriptor that is O_NONBLOCK, for which
 * they wait. Returns the bytes; fewer only where the input ends before (a file, a closed
 * connection), or a write is taken no more though without an error. -1 with errno after an error:
 * how much had gone before is not said, as a stream that has broken off in the middle is of no use.
 * After the read_exactly and write_exactly of PIOMan (piom_io.h). */
ssize_t sterna_read_exactly(int fd, void* buffer, size_t bytes) STERNA_NOEXCEPT;
ssize_t sterna_readv_exactly(int fd, const struct iovec* parts, int count) STERNA_NOEXCEPT;
ssize_t sterna_write_exactly(int fd, const void* data, size_t bytes) STERNA_NOEXCEPT;
ssize_t sterna_writev_exactly(int fd, const struct iovec* parts, int count) STERNA_NOEXCEPT;

int sterna_fsync(int fd) STERNA_NOEXCEPT;
int sterna_fdatasync(int fd) STERNA_NOEXCEPT;
int sterna_tcdrain(int fd) STERNA_NOEXCEPT;
/* `mode` counts with O_CREAT or O_TMPFILE. */
int sterna_open(const char* path, int flags, mode_t mode) STERNA_NOEXCEPT;

/* While a connection comes about the socket is O_NONBLOCK, for all who have it. */
int sterna_connect(int fd, const struct sockaddr* address, socklen_t bytes) STERNA_NOEXCEPT;
/* With SOCK_CLOEXEC and SOCK_NONBLOCK in `flags`, as accept4. */
int sterna_accept(int fd, struct sockaddr* address, socklen_t* bytes, int flags) STERNA_NOEXCEPT;

ssize_t sterna_recv(int fd, void* buffer, size_t bytes, int flags) STERNA_NOEXCEPT;
ssize_t sterna_recvfrom(int fd, void* buffer, size_t bytes, int flags, struct sockaddr* address,
                        socklen_t* address_bytes) STERNA_NOEXCEPT;
ssize_t sterna_recvmsg(int fd, struct msghdr* message, int flags) STERNA_NOEXCEPT;
ssize_t sterna_send(int fd, const void* data, size_t bytes, int flags) STERNA_NOEXCEPT;
ssize_t sterna_sendto(int fd, const void* data, size_t bytes, int flags,
                      const struct sockaddr* address, socklen_t address_bytes) STERNA_NOEXCEPT;
ssize_t sterna_sendmsg(int fd, const struct msghdr* message, int flags) STERNA_NOEXCEPT;

int sterna_poll(struct pollfd* descriptors, nfds_t count, int timeout_ms) STERNA_NOEXCEPT;
/* `timeout` is what is left of it afterwards, as on Linux. */
int sterna_select(int count, fd_set* readable, fd_set* writable, fd_set* exceptional,
                  struct timeval* timeout) STERNA_NOEXCEPT;

/* Nothing is left when it returns: it is not interrupted. */
int sterna_nanosleep(const struct timespec* duration) STERNA_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif /* STERNA_IO_H */
