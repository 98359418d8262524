//! Starting a child as the login user, with or without a terminal (the agent).
