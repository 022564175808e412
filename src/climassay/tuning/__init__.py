"""LoRA training of local models: continued pre-training on texts, fine-tuning on chats, and the resulting adapters."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
