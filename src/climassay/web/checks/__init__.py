"""Check claims and texts in the browser: submit a claim, watch the debate, read the verdict, and review it."""
