"""The start page, signing in, one's own account, and the accounts of others."""

from fastapi import APIRouter

from climassay.web.entrance import account, people, sign_in

router = APIRouter()
for part in (sign_in, account, people):
    router.include_router(part.router)
