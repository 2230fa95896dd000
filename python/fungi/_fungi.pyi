# SPDX-License-Identifier: Apache-2.0
# The compiled part, which is nobody's to call: what people call has its types in the files beside it.
from typing import Any

__version__: str

def __getattr__(name: str) -> Any: ...
