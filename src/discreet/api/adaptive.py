"""What to ask next, of any calibration, and what the answers say of all items.

In: a calibration, answers. Out: information, the next item, items that stand for all, predicted
scores.
"""

from discreet import adaptive
from discreet.api.opening import opens
from discreet.scales import predicted

item_information = opens(adaptive.item_information)
next_item = opens(adaptive.next_item)
predict_scores = opens(predicted.predict_scores)
select_items = opens(predicted.select_items)
