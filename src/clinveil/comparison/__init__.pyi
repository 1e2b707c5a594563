from .measured import AudienceVerdict as AudienceVerdict
from .measured import Comparison as Comparison
from .measured import MeasuredRelease as MeasuredRelease
from .run import compare_invented as compare_invented
from .run import compare_releases as compare_releases
from .settings import CompareSettings as CompareSettings
from .table import table_of as table_of
