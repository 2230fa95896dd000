// SPDX-License-Identifier: Apache-2.0
// What a signal interrupts goes on, and a file that ends too early is told from one that fails.
#include "fungi/base/descriptor.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <thread>

#include "tests/support/folder.h"

namespace fungi {
namespace {

TEST(Descriptor, ReadsAllOrSaysThatTheFileEnds) {
  const test::TemporaryFolder folder;
  const Descriptor file(::open(folder.write("a", "0123456789").c_str(), O_RDWR));
  std::string found(4, ' ');
  const auto room = std::as_writable_bytes(std::span(found));
  errno = EIO;
  EXPECT_FALSE(read_all_at(file, 7, room));
  EXPECT_EQ(errno, 0);
  EXPECT_TRUE(read_all_at(file, 6, room));
  EXPECT_EQ(found, "6789");
  EXPECT_TRUE(write_all_at(file, 9, room));
  EXPECT_EQ(test::read_file(folder / "a"), "0123456786789");
  EXPECT_FALSE(read_all_at(Descriptor(), 0, room));
  EXPECT_EQ(errno, EBADF);
  EXPECT_FALSE(write_all(Descriptor(), room));
}

TEST(Descriptor, WritesOnAfterASignal) {
  struct sigaction quiet {
  }, before{};
  quiet.sa_handler = [](int) {};  // without SA_RESTART: write() ends with EINTR
  ASSERT_EQ(::sigaction(SIGUSR1, &quiet, &before), 0);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const Descriptor out(ends[0]);
  Descriptor in(ends[1]);
  const std::string text(size_t{1} << 20, 'x');  // more than a pipe holds
  std::atomic<bool> done = false, whole = false;
  std::thread writer([&] {
    whole = write_all(in, std::as_bytes(std::span(text)));
    done = true;
    ::close(in.release());
  });
  size_t taken = 0;
  std::string piece(65536, ' ');
  for (ssize_t count = 1; count > 0; taken += size_t(count)) {
    for (int signal = 0; signal < 3 && !done; ++signal) {
      ::pthread_kill(writer.native_handle(), SIGUSR1);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    count = ::read(out.number, piece.data(), piece.size());
    ASSERT_GE(count, 0);
  }
  writer.join();
  ::sigaction(SIGUSR1, &before, nullptr);
  EXPECT_TRUE(whole);
  EXPECT_EQ(taken, text.size());
}

}  // namespace
}  // namespace fungi
