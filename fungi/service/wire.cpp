// SPDX-License-Identifier: Apache-2.0
#include "fungi/service/wire.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace fungi::service {

Wire::Wire(Descriptor socket, TlsContext* tls, std::string peer)
    : socket_(std::move(socket)), peer_(std::move(peer)) {
  if (tls) tls_ = tls->session(socket_.number);
}

// close() shuts the socket down, which ends every poll().
bool Wire::wait(short events, Clock::time_point until) {
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    if (left <= 0 || closed_) return timed_out_ = left <= 0, false;
    pollfd p{socket_.number, events, 0};
    const int ready = ::poll(&p, 1, int(std::min<long long>(left, 60'000)));
    if (ready > 0) return !closed_;
    if (ready < 0 && errno != EINTR) return false;
  }
}

bool Wire::greet(Clock::time_point until) {
  while (tls_) switch (tls_->accept()) {
      case TlsNext::done:
        return true;
      case TlsNext::read:
        if (!wait(POLLIN, until)) return false;
        break;
      case TlsNext::write:
        if (!wait(POLLOUT, until)) return false;
        break;
      case TlsNext::failed:
        return false;
    }
  return true;
}

bool Wire::wait_readable(Clock::time_point until) {
  if (begin_ < end_ || (tls_ && tls_->pending())) return true;
  const bool came = wait(POLLIN, until);
  timed_out_ = false;
  return came;
}

long Wire::receive(char* to, size_t size) {
  for (;;) {
    if (tls_) {
      size_t got = 0;
      switch (tls_->read(to, size, got)) {
        case TlsNext::done:
          return long(got);
        case TlsNext::read:
          if (!wait(POLLIN, deadline_)) return -1;
          break;
        case TlsNext::write:
          if (!wait(POLLOUT, deadline_)) return -1;
          break;
        case TlsNext::failed:
          return -1;
      }
      continue;
    }
    const ssize_t got = ::recv(socket_.number, to, size, 0);
    if (got >= 0) return long(got);
    if (errno == EINTR) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK) return -1;
    if (!wait(POLLIN, deadline_)) return -1;
  }
}

long Wire::read(char* to, size_t size) {
  if (allowed_ == 0) exceeded_ = true;
  // A client that sends one byte now and then is never waited for; it has no more time than others.
  if (Clock::now() >= deadline_) timed_out_ = true;
  if (closed_ || exceeded_ || timed_out_) return -1;
  if (begin_ == end_) {
    const long got = receive(buffer_, sizeof buffer_);
    if (got <= 0) return got;
    begin_ = 0, end_ = size_t(got);
  }
  const size_t taken = std::min({size, end_ - begin_, allowed_});
  std::memcpy(to, buffer_ + begin_, taken);
  begin_ += taken, allowed_ -= taken;
  return long(taken);
}

bool Wire::write(const char* from, size_t size) {
  while (size > 0) {
    if (closed_) return false;
    size_t sent = 0;
    TlsNext next = TlsNext::done;
    if (tls_) {
      next = tls_->write(from, size, sent);
    } else if (const ssize_t n = ::send(socket_.number, from, size, MSG_NOSIGNAL); n >= 0) {
      sent = size_t(n);
    } else {
      next = errno == EINTR                            ? TlsNext::done
             : errno == EAGAIN || errno == EWOULDBLOCK ? TlsNext::write
                                                       : TlsNext::failed;
    }
    from += sent, size -= sent;
    if (next == TlsNext::failed) return false;
    if (next == TlsNext::read && !wait(POLLIN, deadline_)) return false;
    if (next == TlsNext::write && !wait(POLLOUT, deadline_)) return false;
  }
  return true;
}

bool Wire::gone() const {
  if (closed_) return true;
  pollfd p{socket_.number, POLLRDHUP, 0};
  return ::poll(&p, 1, 0) > 0 && (p.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL));
}

void Wire::close() {
  closed_ = true;
  ::shutdown(socket_.number, SHUT_RDWR);
}

// Closing a socket that holds bytes nobody read takes the answer back.
void Wire::finish() {
  constexpr auto kMoment = std::chrono::seconds(1);
  constexpr size_t kMost = size_t{8} << 20;
  if (closed_) return;
  if (tls_) tls_->end();
  ::shutdown(socket_.number, SHUT_WR);
  const auto until = Clock::now() + kMoment;
  for (size_t taken = 0; taken < kMost && wait(POLLIN, until);) {
    const ssize_t got = ::recv(socket_.number, buffer_, sizeof buffer_, 0);
    if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN)) break;
    taken += size_t(std::max<ssize_t>(got, 0));
  }
}

}  // namespace fungi::service
