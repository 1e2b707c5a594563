from .run import compare_releases as compare_releases
from .settings import CompareSettings as CompareSettings
from .table import Comparison as Comparison
from .table import table_of as table_of
