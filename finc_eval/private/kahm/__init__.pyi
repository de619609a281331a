from . import federated as federated
