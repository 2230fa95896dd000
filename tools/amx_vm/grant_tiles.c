// SPDX-License-Identifier: Apache-2.0
// Preloaded: a program's request to use tiles is granted, since the kernel of the imitated machine
// does not know of them (see enable_tiles.c). Every other system call is made.
#include <errno.h>
#include <stdarg.h>
#include <sys/syscall.h>

long syscall(long number, ...) {
  va_list list;
  va_start(list, number);
  long a[6];
  for (int i = 0; i < 6; ++i) a[i] = va_arg(list, long);
  va_end(list);
  if (number == SYS_arch_prctl && a[0] == 0x1023) return 0;  // ARCH_REQ_XCOMP_PERM
  register long fourth __asm__("r10") = a[3];
  register long fifth __asm__("r8") = a[4];
  register long sixth __asm__("r9") = a[5];
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a[0]), "S"(a[1]), "d"(a[2]), "r"(fourth), "r"(fifth), "r"(sixth)
                   : "rcx", "r11", "memory");
  if (result >= 0) return result;
  errno = (int)-result;
  return -1;
}
