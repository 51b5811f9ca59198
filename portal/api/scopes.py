"""Room: portal.api. What a token may be used for: each view names one scope for reading and one for acting."""

from rest_framework.exceptions import NotAuthenticated
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request
from rest_framework.views import APIView

from portal.accounts.models import ApiToken, Scope, User

ADMIN = Scope.ADMIN


class ScopeRequired(BasePermission):
    """Tokens need the view's scope; a signed-in browser has its owner's rights. Visitors may read what is public.

    A view says `acts = Scope.X` for unsafe methods (default: run) and `private = True` when visitors have no business.
    """

    def has_permission(self, request: Request, view: APIView) -> bool:
        """Whether the request may go on to the view, which still asks the room about the thing itself."""
        safe = request.method in SAFE_METHODS
        if not request.user.is_authenticated:
            return safe and not getattr(view, "private", False)
        if not isinstance(request.auth, ApiToken):
            return True
        needed = getattr(view, "reads", Scope.READ) if safe else getattr(view, "acts", Scope.RUN)
        self.message = f"this token lacks the scope '{needed}'; make one that has it on the account page"
        return needed in request.auth.scopes


def user_of(request: Request) -> User:
    """The person who asks, typed. Raises NotAuthenticated for visitors."""
    if not isinstance(request.user, User):
        raise NotAuthenticated
    return request.user
