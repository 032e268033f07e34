"""`python -m deploy.console --config FILE`: coordinator and console, with what explains rows.

The console itself does not know the stream engine; here the two are put together.
"""

import sys

from deploy.explainer import EngineExplainer
from ui.__main__ import main

if __name__ == "__main__":
    sys.exit(main(EngineExplainer(), program="deploy.console"))
