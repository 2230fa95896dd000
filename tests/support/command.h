// SPDX-License-Identifier: Apache-2.0
// Running programs in tests as a user would: exit status, stdout and stderr.
#pragma once

#include <sys/wait.h>

#include <cstdlib>
#include <string>

#include "tests/support/folder.h"

namespace fungi::test {

struct Outcome {
  int status = -1;  // exit status, or 128 + signal
  std::string out, err;
};

// `arguments` is a shell text; the program is the fungi of this build.
inline Outcome run_fungi(const std::string& arguments, const std::string& before = "") {
  const TemporaryFolder folder;
  const std::string program = std::filesystem::absolute(FUNGI_BINARY);  // `before` may go elsewhere
  const std::string command = before + " '" + program + "' " + arguments + " >'" +
                              (folder / "out").string() + "' 2>'" + (folder / "err").string() + "'";
  const int status = std::system(command.c_str());
  Outcome o;
  o.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  o.out = read_file(folder / "out");
  o.err = read_file(folder / "err");
  return o;
}

}  // namespace fungi::test
