"""A seeded simulation: users, an agent, a platform and a process that fail, and an oracle that watches."""
