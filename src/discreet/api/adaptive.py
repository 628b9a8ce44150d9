"""What to ask next, of any calibration.

In: a calibration. Out: information, the next item.
"""

from discreet import adaptive
from discreet.api.opening import opens

item_information = opens(adaptive.item_information)
next_item = opens(adaptive.next_item)
