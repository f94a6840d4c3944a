"""Code in the sandbox calls functions of this program, and a person (here: a rule) approves each call."""

from sandlite import Sandbox, ToolCall

ORDERS = {"ada": ["tea"], "bob": ["coffee", "cake"]}


def orders(customer: str) -> list:
    """What a customer has ordered."""
    return ORDERS.get(customer, [])


def cancel(customer: str, item: str) -> str:
    """Cancels an order."""
    ORDERS[customer].remove(item)
    return "cancelled"


def approve(call: ToolCall) -> bool:
    allowed = call.name != "cancel"
    print(f"{call.name}({dict(call.arguments)}): {'yes' if allowed else 'no'}")
    return allowed


CODE = """
from sandlite import tools, ToolError
for name in ("ada", "bob"):
    print(name, tools.orders(name))
try:
    tools.cancel("bob", "cake")
except ToolError as error:
    print("refused:", error)
"""

with Sandbox(tools=[orders, cancel], approve=approve) as box:
    print(box.python(CODE, check=True).stdout, end="")
    print([row.command for row in box.history() if row.name == "tool"])
