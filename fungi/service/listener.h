// SPDX-License-Identifier: Apache-2.0
// A port that is listened on, and a thread for each connection, which the next one takes over.
// Internal to this room.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "fungi/service/wire.h"

namespace fungi::service {

// True where only programs of this machine reach it.
bool is_loopback(const std::string& host);

class Listener {
 public:
  // Error where the port cannot be had. Where as many connections are there as may be, the one that
  // has said nothing for longest is given up for a new one.
  Listener(const std::string& host, uint16_t port, size_t connections, std::unique_ptr<TlsContext>,
           std::function<void(Wire&)> serve);
  ~Listener();

  uint16_t port() const { return port_; }
  size_t connections() const;
  // Takes no more connections; those that are idle end at once, the others when they have their
  // answer, or after so many seconds.
  void stop(double seconds);

 private:
  void accept();
  void take(Descriptor socket, std::string peer);
  void work();

  std::function<void(Wire&)> serve_;
  std::unique_ptr<TlsContext> tls_;
  size_t most_;
  uint16_t port_ = 0;
  Descriptor socket_, wake_read_, wake_write_;
  mutable std::mutex mutex_;
  std::condition_variable work_, left_;
  std::list<std::shared_ptr<Wire>> open_;     // oldest first
  std::list<std::shared_ptr<Wire>> waiting_;  // for a thread
  size_t threads_ = 0, resting_ = 0;
  bool stopping_ = false;
  std::thread acceptor_;
};

}  // namespace fungi::service
