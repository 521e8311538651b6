"""The promises of `perdure.ports.store.Store` as tests. Subclass it and give it a `store` fixture:

class TestMyStore(StoreContract):
    @pytest.fixture
    def store(self, tmp_path):
        store = MyStore(tmp_path / "db")
        yield store
        store.close()
"""

from __future__ import annotations

from perdure.testing.contract.access import AccessContract
from perdure.testing.contract.conversation import ConversationContract, DigestContract
from perdure.testing.contract.index import IndexContract
from perdure.testing.contract.index_whole import IndexWholeContract
from perdure.testing.contract.jobs import JobContract
from perdure.testing.contract.knowledge import RecordContract
from perdure.testing.contract.log import JournalContract, LogContract
from perdure.testing.contract.oversight import OversightContract
from perdure.testing.contract.series import SeriesContract, StateContract
from perdure.testing.contract.tallies import TallyContract
from perdure.testing.contract.transactions import TransactionContract, WholeStoreContract

__all__ = ["StoreContract"]


class StoreContract(
    TransactionContract,
    LogContract,
    ConversationContract,
    DigestContract,
    JobContract,
    JournalContract,
    StateContract,
    SeriesContract,
    RecordContract,
    TallyContract,
    IndexContract,
    IndexWholeContract,
    OversightContract,
    AccessContract,
    WholeStoreContract,
):
    """Everything a store promises."""
