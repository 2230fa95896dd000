// SPDX-License-Identifier: Apache-2.0
// TLS of a server with a certificate pair. A build without OpenSSL has a stub.
// Internal to this room.
#pragma once

#include <filesystem>
#include <memory>

namespace fungi::service {

enum class TlsNext { done, read, write, failed };  // what has to be waited for before trying again

class TlsSession {
 public:
  virtual ~TlsSession() = default;
  virtual TlsNext accept() = 0;
  virtual TlsNext read(char* to, size_t size, size_t& got) = 0;  // done with 0: the end
  virtual TlsNext write(const char* from, size_t size, size_t& sent) = 0;
  virtual bool pending() const = 0;
  virtual void end() = 0;
};

class TlsContext {
 public:
  virtual ~TlsContext() = default;
  virtual std::unique_ptr<TlsSession> session(int socket) = 0;
};

// Error where the files are no pair, or this build has no TLS.
std::unique_ptr<TlsContext> open_tls(const std::filesystem::path& certificate,
                                     const std::filesystem::path& key);

}  // namespace fungi::service
