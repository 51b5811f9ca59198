"""Room: portal.pages. A whole agent config that a newcomer can start from. A test parses it."""

EXAMPLE_CONFIG = """\
name: react-scripted-reference
agent: react
model:
  provider: scripted
  name: reference
tools: innovatorbench
hint: none
limits: {steps: 300, usd: 1}
"""
