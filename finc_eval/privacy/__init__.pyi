from .dp.gaussian_mechanism import Guarantee as Guarantee
from .dp.ledger import Ledger as Ledger
from .reference.release import release as release
from .reference.sketch import PrivateSketch as PrivateSketch
from .reference.transform import PublicTransform as PublicTransform
from .synthesis.synthesize import synthesise_images as synthesise_images
from .synthesis.synthesize import synthesise_table as synthesise_table
from .synthesis.tabular import Table as Table
