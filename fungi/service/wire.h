// SPDX-License-Identifier: Apache-2.0
// One connection: bytes in and out, every wait with an end, plain or TLS.
// Internal to this room.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "fungi/base/descriptor.h"
#include "fungi/service/tls.h"

namespace fungi::service {

using Clock = std::chrono::steady_clock;

class Wire {
 public:
  // The socket does not block. tls: null for a plain connection.
  Wire(Descriptor socket, TlsContext* tls, std::string peer);
  Wire(const Wire&) = delete;

  // False: the client does not speak TLS, or not in time.
  bool greet(Clock::time_point until);

  // What is waited for until when; reading and writing fail afterwards.
  void set_deadline(Clock::time_point until) { deadline_ = until; }
  Clock::time_point deadline() const { return deadline_; }
  bool timed_out() const { return timed_out_; }
  // Bytes that may still be read; then reading fails.
  void allow(size_t bytes) { allowed_ = bytes, exceeded_ = false; }
  bool exceeded() const { return exceeded_; }

  // True once something can be read, false where nothing came or close() was called.
  bool wait_readable(Clock::time_point until);
  // More than 0: so many bytes. 0: the other side has ended. Negative: no more, or no more in time.
  long read(char* to, size_t size);
  // All of it, or false.
  bool write(const char* from, size_t size);
  // Whether the client has closed its side.
  bool gone() const;

  // After this, reading and writing fail. From any thread.
  void close();
  // The answer is out: waits a moment until the client has read it, whatever it still sends.
  void finish();

  // Where nothing of a request is being worked on, so that the connection may be given up.
  void set_idle(bool idle) { idle_ = idle; }
  bool idle() const { return idle_; }
  Clock::time_point since() const { return since_; }  // connected
  const std::string& peer() const { return peer_; }

 private:
  bool wait(short events, Clock::time_point until);
  long receive(char* to, size_t size);

  Descriptor socket_;
  std::unique_ptr<TlsSession> tls_;
  std::string peer_;
  Clock::time_point since_ = Clock::now(), deadline_ = Clock::time_point::max();
  size_t allowed_ = SIZE_MAX;
  std::atomic<bool> idle_ = true, closed_ = false;
  bool timed_out_ = false, exceeded_ = false;
  char buffer_[4096];
  size_t begin_ = 0, end_ = 0;  // of what was received and not yet read
};

}  // namespace fungi::service
