from .dp.gaussian_mechanism import Guarantee as Guarantee
from .dp.ledger import Ledger as Ledger
from .reference.release import release as release
from .reference.sketch import PrivateSketch as PrivateSketch
from .reference.transform import PublicTransform as PublicTransform
from .synthesis.synthesize import synthesize_images as synthesize_images
from .synthesis.synthesize import synthesize_table as synthesize_table
from .synthesis.tabular import Table as Table
