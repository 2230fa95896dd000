// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
// A kernel module that switches on the state of AMX tiles (bits 17 and 18 of XCR0). Linux itself
// does so only on processors that can also take it away (XFD), which Bochs does not imitate.
#include <linux/init.h>
#include <linux/module.h>

static int __init enable_tiles(void) {
  u32 low, high;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  asm volatile("xsetbv" : : "a"(low | 0x60000), "d"(high), "c"(0));
  return 0;
}

module_init(enable_tiles);
MODULE_LICENSE("GPL");
