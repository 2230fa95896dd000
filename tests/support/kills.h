// SPDX-License-Identifier: Apache-2.0
// kill -9 at random moments of a command, each time on a fresh store: the same command again must
// end with the bytes of an undisturbed run.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <thread>

#include "fungi/base/random.h"
#include "tests/support/command.h"

namespace fungi::test {

inline size_t count_files(const std::filesystem::path& folder) {
  size_t count = 0;
  std::error_code changing;  // the folder is being written to
  for (std::filesystem::recursive_directory_iterator at(folder, changing), end;
       !changing && at != end; at.increment(changing))
    ++count;
  return count;
}

// Whether the signal found the command at work, once there were so many files.
inline bool kill_at(const std::string& arguments, const std::filesystem::path& folder,
                    size_t files) {
  const std::string command = "exec '" FUNGI_BINARY "' " + arguments + " >/dev/null 2>&1";
  const pid_t child = ::fork();
  if (child == 0) {
    ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    ::_exit(127);
  }
  int status = 0;
  while (::waitpid(child, &status, WNOHANG) == 0) {
    if (count_files(folder) < files) {
      std::this_thread::sleep_for(std::chrono::microseconds(200));
      continue;
    }
    ::kill(child, SIGKILL);
    ::waitpid(child, &status, 0);
    break;
  }
  return WIFSIGNALED(status);
}

inline void expect_kills_leave_no_trace(
    const TemporaryFolder& folder,
    const std::function<std::string(const std::filesystem::path&)>& command_for) {
  constexpr size_t kKills = 20;
  ASSERT_EQ(run_fungi(command_for(folder / "whole")).status, 0);
  const auto expected = contents(folder / "whole");
  const std::string command = command_for(folder / "killed");
  const RandomStream random(11, "kills");
  size_t killed = 0;
  // Where the machine is busy many signals come when the command is done: others are tried then.
  for (size_t i = 0; i < kKills || (killed <= kKills / 2 && i < 6 * kKills); ++i) {
    std::filesystem::remove_all(folder / "killed");
    const auto files = size_t(double(expected.size()) * random.uniform(i));
    killed += kill_at(command, folder / "killed", files);
    ASSERT_EQ(run_fungi(command).status, 0) << "killed with " << files << " files";
    EXPECT_EQ(contents(folder / "killed"), expected) << "killed with " << files << " files";
  }
  EXPECT_GT(killed, kKills / 2) << "the others came too late";
}

}  // namespace fungi::test
