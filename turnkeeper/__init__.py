"""One answer per turn, for chat gateways that drive an agent."""
