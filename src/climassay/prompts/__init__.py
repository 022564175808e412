"""Every prompt template, as files that a user can override.

A template is a text file of Jinja2 in which a line ``[system]``, ``[user]`` or ``[assistant]`` starts a message. An
``[assistant]`` message at the end is the start of the answer that the model continues. To change a prompt, put a file
of the same name into a folder and give that folder to the command (``--prompts``) or to :func:`load_prompt`;
``climassay prompts export FOLDER`` writes all of them out as a start.
"""

from climassay.prompts.templates import Prompt, RenderedPrompt, export_prompts, load_prompt, prompt_names

__all__ = ["Prompt", "RenderedPrompt", "export_prompts", "load_prompt", "prompt_names"]
