// SPDX-License-Identifier: Apache-2.0
#include "fungi/service/listener.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "fungi/base/error.h"

namespace fungi::service {
namespace {

constexpr int kBacklog = 1024;
constexpr auto kRest = std::chrono::seconds(10);  // then a thread without work ends

struct FreeAddresses {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

Addresses addresses_of(const std::string& host, uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  if (const int wrong = ::getaddrinfo(host.c_str(), fmt::format("{}", port).c_str(), &hints, &list))
    fail(fmt::format("this is no address of this machine: {}", ::gai_strerror(wrong)), host,
         "give `listen` a name or an address, such as 127.0.0.1 or 0.0.0.0");
  return Addresses(list);
}

Descriptor listen_on(const addrinfo& at) {
  Descriptor s(::socket(at.ai_family, at.ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int yes = 1;
  if (s.number < 0 || ::setsockopt(s.number, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
      ::bind(s.number, at.ai_addr, at.ai_addrlen) != 0 || ::listen(s.number, kBacklog) != 0)
    return Descriptor();
  return s;
}

std::string text_of(const sockaddr_storage& address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address.ss_family == AF_INET)
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(address).sin_addr, text,
                sizeof text);
  else if (address.ss_family == AF_INET6)
    ::inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr, text,
                sizeof text);
  return text;
}

uint16_t port_of(const Descriptor& s) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  ::getsockname(s.number, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                   : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

}  // namespace

bool is_loopback(const std::string& host) {
  const Addresses list = addresses_of(host, 0);
  for (const addrinfo* a = list.get(); a; a = a->ai_next) {
    if (a->ai_family == AF_INET) {
      const auto& in = *reinterpret_cast<const sockaddr_in*>(a->ai_addr);
      if ((ntohl(in.sin_addr.s_addr) >> 24) != 127) return false;
    } else if (a->ai_family == AF_INET6) {
      const auto& in = *reinterpret_cast<const sockaddr_in6*>(a->ai_addr);
      if (!IN6_IS_ADDR_LOOPBACK(&in.sin6_addr)) return false;
    } else {
      return false;
    }
  }
  return true;
}

Listener::Listener(const std::string& host, uint16_t port, size_t connections,
                   std::unique_ptr<TlsContext> tls, std::function<void(Wire&)> serve)
    : serve_(std::move(serve)), tls_(std::move(tls)), most_(std::max<size_t>(connections, 1)) {
  const Addresses list = addresses_of(host, port);
  for (const addrinfo* a = list.get(); a && socket_.number < 0; a = a->ai_next)
    socket_ = listen_on(*a);
  if (socket_.number < 0)
    fail(fmt::format("cannot listen on port {}: {}", port, std::strerror(errno)), host,
         errno == EADDRINUSE ? "another program has it: choose another `port`, or end that program"
                             : "choose another `listen` or `port`");
  port_ = port_of(socket_);
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC | O_NONBLOCK) != 0)
    fail(fmt::format("cannot make a pipe: {}", std::strerror(errno)), host,
         "allow this process more open files");
  wake_read_ = Descriptor(pipe[0]), wake_write_ = Descriptor(pipe[1]);
  acceptor_ = std::thread([this] { accept(); });
}

Listener::~Listener() { stop(0); }

size_t Listener::connections() const {
  const std::lock_guard lock(mutex_);
  return open_.size();
}

void Listener::accept() {
  for (;;) {
    pollfd p[2]{{socket_.number, POLLIN, 0}, {wake_read_.number, POLLIN, 0}};
    if (::poll(p, 2, -1) < 0 && errno != EINTR) return;
    if (p[1].revents) return;
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    Descriptor s(::accept4(socket_.number, reinterpret_cast<sockaddr*>(&address), &size,
                           SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (s.number < 0) {
      // Too many open files: some connection has to end first.
      if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      continue;
    }
    const int yes = 1;
    ::setsockopt(s.number, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    try {
      take(std::move(s), text_of(address));
    } catch (const std::exception&) {  // no memory or no thread for one more: it is closed
    }
  }
}

void Listener::take(Descriptor socket, std::string peer) {
  auto wire = std::make_shared<Wire>(std::move(socket), tls_.get(), std::move(peer));
  const std::lock_guard lock(mutex_);
  if (open_.size() >= most_) {
    const auto idle =
        std::find_if(open_.begin(), open_.end(), [](const auto& w) { return w->idle(); });
    if (idle == open_.end()) return;  // all are at work: the new one is closed
    (*idle)->close();
    open_.erase(idle);
  }
  if (resting_ <= waiting_.size()) {
    std::thread([this] { work(); }).detach();
    ++threads_;
  }
  open_.push_back(wire);
  waiting_.push_back(std::move(wire));
  work_.notify_one();
}

void Listener::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    ++resting_;
    const bool some = work_.wait_for(lock, kRest, [&] { return stopping_ || !waiting_.empty(); });
    --resting_;
    if (!some || waiting_.empty()) break;
    const std::shared_ptr<Wire> wire = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    try {
      serve_(*wire);
    } catch (const std::exception&) {  // no memory: this connection ends, and no other
    }
    wire->close();
    lock.lock();
    open_.remove(wire);
    left_.notify_all();
  }
  --threads_;
  left_.notify_all();
}

void Listener::stop(double seconds) {
  if (acceptor_.joinable()) {
    static_cast<void>(!::write(wake_write_.number, "", 1));
    acceptor_.join();
  }
  std::unique_lock lock(mutex_);
  stopping_ = true;
  work_.notify_all();
  const auto until = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                        std::chrono::duration<double>(seconds));
  const auto idle = [&] {
    for (const auto& wire : open_)
      if (wire->idle()) wire->close();
    return open_.empty();
  };
  // A connection may become idle at any moment.
  while (!idle() && Clock::now() < until) left_.wait_for(lock, std::chrono::milliseconds(20));
  for (const auto& wire : open_) wire->close();
  left_.wait(lock, [&] { return threads_ == 0; });
}

}  // namespace fungi::service
