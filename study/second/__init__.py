"""The second study: its arms, its rules, and its page; `study/STATEMENT.md` says what each part asks."""
