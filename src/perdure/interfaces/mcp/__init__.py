"""MCP: tools, resources and prompts over the handles, for agents that speak the Model Context Protocol."""
