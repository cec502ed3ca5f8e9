// Moves the bytes of a handshake.
#include "net/drivers/tcp/joining.h"

#include <cerrno>

#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

namespace sterna::net::tcp {

Joining::Step Joining::fail(std::string reason) noexcept {
  reason_ = std::move(reason);
  return Step::failed;
}

bool Joining::finish_connect(Step& step) noexcept {
  pollfd asked{.fd = socket_.get(), .events = POLLOUT, .revents = 0};
  if (system_call([&] { return ::poll(&asked, 1, 0); }) <= 0) {
    step = Step::waiting;
    return false;
  }
  int number = 0;
  socklen_t bytes = sizeof number;
  if (::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &number, &bytes) != 0 || number != 0) {
    step = fail(error_number_text(number));
    return false;
  }
  is_connecting_ = false;
  return true;
}

bool Joining::send_reply() noexcept {
  // The first bytes of a connection always fit in its buffer; anything else is a failure.
  const auto bytes = handshake_.reply();
  if (bytes.empty()) {
    return true;
  }
  const long count = system_call([&] {
    return ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  });
  has_left_ = count == -EPIPE || count == -ECONNRESET;
  return count == static_cast<long>(bytes.size());
}

bool Joining::has_reached_host() const noexcept {
  if (is_connecting_) {
    return false;
  }
  tcp_info info{};
  socklen_t bytes = sizeof info;
  return ::getsockopt(socket_.get(), IPPROTO_TCP, TCP_INFO, &info, &bytes) != 0 ||  // Unix.
         info.tcpi_unacked == 0;
}

Joining::Step Joining::advance() noexcept {
  if (is_connecting_) {
    Step step;
    if (!finish_connect(step)) {
      return step;
    }
    if (!send_reply()) {
      return fail("the connection broke at once");
    }
  }
  for (;;) {
    const std::size_t wanted = handshake_.bytes_wanted();
    const long count = system_call([&] {
      return ::recv(socket_.get(), message_.data() + message_bytes_, wanted - message_bytes_,
                    MSG_DONTWAIT);
    });
    if (count == -EAGAIN) {
      return Step::waiting;
    }
    if (count <= 0) {
      has_left_ = count == 0 || count == -ECONNRESET;
      return fail(count != 0     ? error_number_text(static_cast<int>(-count))
                  : is_pledged() ? "it gave up before it knew that it was admitted"
                                 : "it closed the connection before it had proven itself");
    }
    message_bytes_ += static_cast<std::size_t>(count);
    if (message_bytes_ < wanted) {
      continue;
    }
    message_bytes_ = 0;
    const Handshake::State state = handshake_.take(std::span{message_}.first(wanted));
    if (state == Handshake::State::refused) {
      return fail(std::string{handshake_.refusal()});
    }
    if (!send_reply()) {
      return fail("the connection broke at once");
    }
    if (state != Handshake::State::running) {  // A confirmation is awaited after decide() only.
      return state == Handshake::State::proven     ? Step::proven
             : state == Handshake::State::admitted ? Step::admitted
                                                   : Step::declined;
    }
  }
}

Joining::Step Joining::decide(bool admit) noexcept {
  handshake_.decide(admit);
  if (!send_reply()) {
    return fail("the connection broke at once");
  }
  return admit ? Step::pledged : Step::declined;
}

}  // namespace sterna::net::tcp
