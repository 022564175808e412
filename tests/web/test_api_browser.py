"""The reference of the API in a real browser."""

from browser import sideways


def test_the_reference_fits_its_window_and_its_anchors_lead_to_operations(visit, shoot):
    page = visit()
    page.goto("/api/docs")
    page.get_by_role("link", name="POST /annotate/datasets/{dataset}/items/{draft}/label").click()
    operation = page.locator("#label_item")
    assert operation.evaluate("one => one.getBoundingClientRect().top") < 100
    operation.get_by_text("Examples").click()
    assert operation.get_by_role("region", name="curl").is_visible()
    shoot(page, "api-operation")
    page.goto("/api/docs")
    shoot(page, "api")
    phone = visit(phone=True)
    phone.goto("/api/docs#label_item")
    phone.locator("#label_item").get_by_text("Examples").click()
    assert sideways(phone) == 0
