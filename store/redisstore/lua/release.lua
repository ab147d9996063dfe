-- KEYS lease, fence, sessions
-- ARGV replica, nonce, bytes of released nonces to keep, channel
-- Returns {ok}. The nonce is remembered also when it holds nothing: its acquire may still be on the way.

local lease, fence, nonce = KEYS[1], KEYS[2], ARGV[2]

local err = foreign(lease, 'string') or foreign(fence, 'hash')
if err then
  return err
end
local value = redis.call('GET', lease)
local ours = value and string.match(value, '^%d+ (%S+ %S+)$') == ARGV[1] .. ' ' .. nonce
if ours then
  redis.call('DEL', lease)
end
if not was_released(fence, nonce) then
  local list = nonce .. ' ' .. (redis.call('HGET', fence, 'released') or '')
  redis.call('HSET', fence, 'released', string.sub(list, 1, tonumber(ARGV[3])))
end
redis.call('PEXPIRE', fence, FENCE_MS)
if ours then
  local living = redis.pcall('ZCOUNT', KEYS[3], whole(math.floor(now_us() / 1000)), '+inf')
  publish(ARGV[4], type(living) == 'number' and whole(living) or '') -- how many will hear of it, and may ask
end
return {'ok'}
