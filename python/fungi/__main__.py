# SPDX-License-Identifier: Apache-2.0
from fungi._command import main

main()
