// SPDX-License-Identifier: Apache-2.0
#include "fungi/service/tls.h"

#include "fungi/base/error.h"

#ifdef FUNGI_HAVE_HTTPLIB
#include <openssl/err.h>
#include <openssl/ssl.h>
#endif

namespace fungi::service {

#ifndef FUNGI_HAVE_HTTPLIB

std::unique_ptr<TlsContext> open_tls(const std::filesystem::path&, const std::filesystem::path&) {
  fail("this build of fungi has no server", "`certificate`",
       "build it with libcpp-httplib-dev installed (-DFUNGI_HTTPLIB=ON)");
}

#else

namespace {

class Session final : public TlsSession {
 public:
  Session(SSL_CTX* context, int socket) : ssl_(SSL_new(context), SSL_free) {
    if (!ssl_ || SSL_set_fd(ssl_.get(), socket) != 1) fail("OpenSSL refused a connection", "TLS");
  }
  TlsNext accept() override { return next(SSL_accept(ssl_.get())); }
  TlsNext read(char* to, size_t size, size_t& got) override {
    const int result = SSL_read_ex(ssl_.get(), to, size, &got);
    if (result == 1) return TlsNext::done;
    const TlsNext then = next(result);
    if (ended_) got = 0;
    return ended_ ? TlsNext::done : then;
  }
  TlsNext write(const char* from, size_t size, size_t& sent) override {
    return next(SSL_write_ex(ssl_.get(), from, size, &sent));
  }
  bool pending() const override { return SSL_has_pending(ssl_.get()) == 1; }
  void end() override {
    if (!failed_) SSL_shutdown(ssl_.get());
    ERR_clear_error();
  }

 private:
  TlsNext next(int result) {
    if (result == 1) return TlsNext::done;
    const int why = SSL_get_error(ssl_.get(), result);
    ERR_clear_error();  // of this thread: another connection must not find it
    if (why == SSL_ERROR_WANT_READ) return TlsNext::read;
    if (why == SSL_ERROR_WANT_WRITE) return TlsNext::write;
    ended_ = why == SSL_ERROR_ZERO_RETURN;
    failed_ = !ended_;
    return TlsNext::failed;
  }

  std::unique_ptr<SSL, void (*)(SSL*)> ssl_;
  bool ended_ = false, failed_ = false;
};

class Context final : public TlsContext {
 public:
  Context(const std::filesystem::path& certificate, const std::filesystem::path& key)
      : context_(SSL_CTX_new(TLS_server_method()), SSL_CTX_free) {
    if (!context_) fail("OpenSSL could not be started", "TLS", "free some memory");
    SSL_CTX_set_min_proto_version(context_.get(), TLS1_2_VERSION);
    SSL_CTX_set_mode(context_.get(), SSL_MODE_ENABLE_PARTIAL_WRITE |
                                         SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                         SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_options(context_.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                            SSL_OP_IGNORE_UNEXPECTED_EOF);
    // Nobody is there to type a password.
    SSL_CTX_set_default_passwd_cb(context_.get(), [](char*, int, int, void*) { return 0; });
    require(SSL_CTX_use_certificate_chain_file(context_.get(), certificate.c_str()),
            "expected a certificate in PEM, found none", certificate, "`certificate`");
    require(SSL_CTX_use_PrivateKey_file(context_.get(), key.c_str(), SSL_FILETYPE_PEM),
            "expected a private key in PEM without a password, which belongs to the certificate",
            key, "`key`");
    require(SSL_CTX_check_private_key(context_.get()),
            "this private key does not belong to the certificate", key, "`key`");
  }
  std::unique_ptr<TlsSession> session(int socket) override {
    return std::make_unique<Session>(context_.get(), socket);
  }

 private:
  static void require(int result, const char* what, const std::filesystem::path& file,
                      const char* word) {
    if (result == 1) return;
    char reason[256] = "";
    ERR_error_string_n(ERR_peek_last_error(), reason, sizeof reason);
    ERR_clear_error();
    fail(std::string(what) + " (OpenSSL says " + reason + ")", file.string(),
         std::string("give another file with ") + word);
  }
  std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context_;
};

}  // namespace

std::unique_ptr<TlsContext> open_tls(const std::filesystem::path& certificate,
                                     const std::filesystem::path& key) {
  return std::make_unique<Context>(certificate, key);
}

#endif

}  // namespace fungi::service
